// Records what OpenClaw makes of session keys: node keys.mjs DIST KEYS.json > keys.json
// DIST is the dist folder of openclaw@2026.7.35; the names of its bundles are that release's.
import { readFileSync } from 'node:fs';
const [dist, file] = process.argv.slice(2);
const u = await import(`${dist}/session-key-utils-A-JGvyXu.js`);
const chat = await import(`${dist}/session-chat-type-shared-DlB0c25q.js`);
const kind = await import(`${dist}/classify-session-kind-ms8-9L9l.js`);
const store = await import(`${dist}/store-OOVm99jJ.js`);
const key = await import(`${dist}/session-key-VWT_xzM9.js`);
const out = JSON.parse(readFileSync(file, 'utf8')).map((k) => {
  const p = u.c(k);
  const t = store.$(k);
  return { key: k, canonical: u.o(k), agent: p?.agentId, rest: p?.rest, keyAgent: key.p(k), cron: u.i(k), cronRun: u.r(k), acp: u.n(k), subagent: u.a(k), kind: kind.t(k, {}), chat: chat.t(k), parent: t.threadId ? t.baseSessionKey : undefined, thread: t.threadId };
});
console.log('[\n' + out.map((o) => JSON.stringify(o)).join(',\n') + '\n]');
process.exit(0);
