// What the real OpenClaw finds behind the rows of a store: node stored.mjs DIST STORE AGENT prints, a line a row, {"key":...,"id":...,"messages":[...]}.
import { copyFileSync, existsSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, store, agent] = process.argv.slice(2);
const wanted = { session: "SessionManager", load: "loadSessionStore", path: "resolveSessionFilePath" };
const found = {};
for (const name of readdirSync(dist)) {
  if (!/^(session-manager|store|paths)-.*\.js$/.test(name)) continue;
  for (const x of Object.values(await import(pathToFileURL(join(dist, name))))) {
    for (const [as, called] of Object.entries(wanted)) if (typeof x === "function" && x.name === called) found[as] ??= x;
  }
}
if (Object.keys(found).length < Object.keys(wanted).length) {
  console.error("this release has not all of " + Object.values(wanted).join(", ") + " where they are looked for");
  process.exit(3);
}
const copies = mkdtempSync(join(tmpdir(), "stored"));
let n = 0;
for (const [key, entry] of Object.entries(found.load(store))) {
  if (!entry.sessionId) continue;
  const file = found.path(entry.sessionId, entry, { sessionsDir: dirname(store), agentId: agent });
  let messages = [];
  if (existsSync(file)) {
    const copy = join(copies, n++ + ".jsonl"); // it writes when it opens
    copyFileSync(file, copy);
    messages = (await found.session.open(copy).buildSessionContext()).messages;
  }
  console.log(JSON.stringify({ key, id: entry.sessionId, messages }));
}
process.exit(0);
