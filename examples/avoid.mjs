// Leave places out of reports, on the device: the guarantee stays exactly the same, and nobody learns which places these are.
import { readFile } from "node:fs/promises";
import { open } from "metricdp";

const mechanism = await open("porto.mdp", { trusted: await readFile("me.pub", "utf8") });
const avoided = [3, 4, 21]; // codes of reports: a standing wish, not a function of where one is
const mine = mechanism.prune(avoided);

const here = mechanism.secretAt(4); // somebody who is at such a place is protected as before
const { code, point } = mine.sample(here);
console.log("report", point, "avoided", avoided.includes(code)); // never true
console.log(mine.guarantee.epsilon === mechanism.guarantee.epsilon); // post-processing: the same guarantee
console.log(mine.audit().verdict); // a second opinion, in doubles
