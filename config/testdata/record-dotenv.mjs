// Regenerates dotenv.json: what the npm package dotenv makes of each text.
// Run in a directory where `npm install dotenv` was done: node record-dotenv.mjs path/to/testdata
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const file = (process.argv[2] ?? '.') + '/dotenv.json'
const dotenv = createRequire(process.cwd() + '/')('dotenv')
const cases = JSON.parse(readFileSync(file, 'utf8'))
writeFileSync(file, JSON.stringify(cases.map(({ text }) => ({ text, variables: dotenv.parse(text) })), null, 1) + '\n')
