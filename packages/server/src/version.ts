import { createRequire } from 'node:module'

/** From the package's own manifest, which is one folder above `src` and `dist` alike. */
export const VERSION: string = createRequire(import.meta.url)('../package.json').version
