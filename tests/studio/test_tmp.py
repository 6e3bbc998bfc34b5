def test_shots(page):
    for room in ["feel","design","audit","budget","protect"]:
        page.goto(page.home+"/#"+room); page.wait_for_selector(f"body[data-ready={room}]", timeout=40000); page.wait_for_timeout(800)
        page.screenshot(path=f"/tmp/st/{room}.png", full_page=True); print(room)
