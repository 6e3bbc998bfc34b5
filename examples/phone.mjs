// Draw a report on the device. In a browser the same, with the text of me.pub in the app.
import { readFile } from "node:fs/promises";
import { open } from "metricdp";

const trusted = await readFile("me.pub", "utf8");
const mechanism = await open("porto.mdp", { trusted });
console.log(mechanism.explain().short);
console.log(mechanism.licence);

const here = [41.1494, -8.611]; // the true position; it stays on the device
const { point } = mechanism.sample(here, { clamp: true }); // as if at the nearest crossing, wherever that is
console.log("report", point);
