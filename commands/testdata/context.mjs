// What the real OpenClaw makes of transcripts: node context.mjs DIST FILE... prints, a line a file, {"messages":[...],"repaired":bool}.
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, ...files] = process.argv.slice(2);
let manager, repair;
for (const name of readdirSync(dist)) {
  if (!/^session-manager-.*\.js$/.test(name)) continue;
  const found = Object.values(await import(pathToFileURL(join(dist, name)))).filter((x) => typeof x === "function");
  manager ??= found.find((x) => x.name === "SessionManager" && x.open);
  repair ??= found.find((x) => x.name === "repairSessionFileIfNeeded");
}
if (!manager || !repair) {
  console.error("this release has no SessionManager, or no repairSessionFileIfNeeded, where it is looked for");
  process.exit(3);
}
for (const file of files) {
  const copy = file + ".copy.jsonl"; // both write
  copyFileSync(file, copy);
  const { messages } = await manager.open(copy).buildSessionContext();
  copyFileSync(file, copy);
  const { repaired } = await repair({ sessionFile: copy });
  console.log(JSON.stringify({ messages, repaired }));
}
process.exit(0);
