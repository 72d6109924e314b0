// Regenerates npm.json: what the npm package json5 says about each input of inputs.json.
// Run in a directory where `npm install json5@2.2.3` was done: node record.mjs path/to/testdata
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const dir = process.argv[2] ?? '.'
const JSON5 = createRequire(process.cwd() + '/')('json5')
console.warn = () => {}
const inputs = JSON.parse(readFileSync(dir + '/inputs.json', 'utf8'))
const answers = inputs.map((base64) => {
  const text = Buffer.from(base64, 'base64').toString('utf8')
  try {
    // Tag what JSON cannot say.
    const tag = (key, value) => (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0)) ? `number:${Object.is(value, -0) ? '-0' : value}` : value)
    return { input: base64, text, json: JSON.stringify(JSON5.parse(text), tag) }
  } catch (e) {
    return { input: base64, text, error: e.message, line: e.lineNumber, column: e.columnNumber }
  }
})
writeFileSync(dir + '/npm.json', JSON.stringify(answers, null, 1) + '\n')
