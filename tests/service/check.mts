// What a program in TypeScript writes; compiled by the tests where TypeScript is installed.
import { ServiceClient, ServiceError, requestId } from "../../js/service/client.js";
import type { BatchAnswer, JobAnswer, ReleaseAnswer } from "../../js/service/client.js";

const client = new ServiceClient("http://127.0.0.1:8484", "token", { tries: 3 });
const answer: ReleaseAnswer = await client.release({ person: "anna", request: requestId(), secret: { lat: 1, lon: 2 } });
const radius: number = answer.accuracy[0]!.radius;
const left: number = answer.left.micro_epsilon;
const batch: BatchAnswer = await client.releaseBatch({ request: requestId(), rows: [{ person: "b", secret: [1, 2] }] });
const job: JobAnswer = await client.design({ points: [[0], [1]], epsilon: 1 });
for await (const event of client.designEvents(job.job)) console.log(event.event, event.data);
const file: Uint8Array = await client.designResult(job.job);
// @ts-expect-error a person is needed
await client.release({ request: "r", secret: 1 });
// @ts-expect-error a kind there is not
await client.audit({ kind: "command", command: "true" });
export { ServiceError, batch, file, left, radius };
