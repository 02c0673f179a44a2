/**
 * No server outlives the process that started it, however that process ends.
 *
 *   this process ──spawns──▶ server 1, server 2, …     (each in a session of its own: Ctrl-C must not reach them first)
 *        └──────── pipe ───▶ guard (one small shell)
 *
 * The guard is told of every server and every temporary folder over its standard input. When the pipe ends (exit, crash
 * or kill -9 alike: the kernel closes it) it stops what is still on its list, waits, kills the rest and removes the folders.
 */
import { type ChildProcess, spawn } from 'node:child_process'

export type StopSignal = 'SIGTERM' | 'SIGINT' | 'SIGKILL'

// Lists are kept one item a line, because a folder's name may contain spaces.
const GUARD = `
trap '' INT TERM HUP QUIT
servers= folders= newline='
'
without() { # list, item
  IFS=$newline
  for item in $1; do [ "$item" = "$2" ] || printf '%s\\n' "$item"; done
}
alive() { # a zombie does nothing any more, but where process 1 never looks after its children it stays for good
  kill -0 "$1" 2>/dev/null || return 1
  [ -e "/proc/$1/stat" ] || return 0
  IFS= read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  case \${stat##*) } in Z*) return 1 ;; esac
}
while IFS= read -r line; do
  item=\${line#* }
  case $line in
    'server '*) servers="$servers$newline$item" ;;
    'gone '*) servers=$(without "$servers" "$item") ;;
    'folder '*) folders="$folders$newline$item" ;;
    'removed '*) folders=$(without "$folders" "$item") ;;
  esac
done
IFS=$newline
for server in $servers; do
  kill -s "\${server%% *}" "\${server##* }" && kill -s CONT "\${server##* }"
done 2>/dev/null
passes=0
while [ $passes -lt 100 ]; do
  left=
  for server in $servers; do alive "\${server##* }" && left=1; done
  [ "$left" ] || break
  sleep 0.1
  passes=$((passes + 1))
done
for server in $servers; do kill -s KILL "\${server##* }"; done 2>/dev/null
for folder in $folders; do rm -rf -- "$folder"; done
`

let guard: ChildProcess | undefined

function tell(line: string): void {
  if (!guard) {
    guard = spawn('/bin/sh', ['-c', GUARD], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
    // Neither the guard nor its pipe keeps this process alive; a guard that is gone is nothing that a caller could act on.
    guard.on('error', () => {})
    guard.stdin?.on('error', () => {})
    guard.unref()
    ;(guard.stdin as unknown as { unref(): void }).unref()
  }
  guard.stdin?.write(`${line}\n`)
}

const serverLine = (pid: number, signal: StopSignal) => `${signal.slice(3)} ${pid}`

export const guardServer = (pid: number, signal: StopSignal) => tell(`server ${serverLine(pid, signal)}`)
export const forgetServer = (pid: number, signal: StopSignal) => tell(`gone ${serverLine(pid, signal)}`)

/** Removes the folder when this process ends. A name with a line break in it can't be told apart from two names, so it is left. */
export const guardFolder = (path: string) => path.includes('\n') || tell(`folder ${path}`)
export const forgetFolder = (path: string) => path.includes('\n') || tell(`removed ${path}`)
