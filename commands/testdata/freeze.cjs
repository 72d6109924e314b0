// Stops the clock of the real OpenClaw at OC_NOW, so that ages can be compared: NODE_OPTIONS="--require .../freeze.cjs"
const at = Number(process.env.OC_NOW);
const Clock = globalThis.Date;
globalThis.Date = class extends Clock {
  constructor(...args) {
    if (args.length === 0) super(at);
    else super(...args);
  }
  static now() {
    return at;
  }
};
