import { EXIT, type Run } from '../command.js'
import { bashScript } from './bash.js'
import { fishScript } from './fish.js'
import { zshScript } from './zsh.js'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** Everything stands in the script: nothing of ours is started while somebody types. */
export const completion: Run = async ({ config }, { print }) => {
  print(SCRIPTS[config.shell as keyof typeof SCRIPTS]())
  return EXIT.ok
}
