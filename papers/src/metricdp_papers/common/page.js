for (const input of document.querySelectorAll("input[data-table]")) {
  const rows = [...document.getElementById(input.dataset.table).tBodies[0].rows];
  const said = input.parentElement.querySelector("output");
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    said.textContent = `${count} of ${rows.length}`;
  };
  input.parentElement.hidden = false;
  input.addEventListener("input", show);
  show();
}
