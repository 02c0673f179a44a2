import { invalid, namesOf, oneOf, options as optionsOf, show } from '../../input/index.js'
import type { ScriptArg } from '../../redis/index.js'
import { permissionsChange, permissionsForget, permissionsRead } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import { type Context, tell } from '../context.js'
import { KeySpace, type Scope } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { Layout, movesFrom, type OlderLayout, type PermissionsLayout } from './layout.js'

export interface PermissionsOptions<Name extends string> extends PermissionsLayout<Name> {
  /** The layout before this one. Who still has permissions by it keeps them, and is moved by the first change. */
  readonly upgrade?: OlderLayout<NoInfer<Name>>
}

const OPTION_NAMES = namesOf<PermissionsOptions<string>>({ version: true, names: true, upgrade: true })

export interface PermissionsChange<Name extends string> {
  /** Which of them this call has granted or revoked; the others were so before. */
  readonly changed: readonly Name[]
  /** All that the subject has now. */
  readonly names: readonly Name[]
}

const UPGRADE_NAMES = namesOf<OlderLayout<string>>({ version: true, names: true, renamed: true })

type Subject = string | readonly string[]

/** Flags of subjects, one bit for each name: small, fast, and not for what security depends on. */
export class Permissions<const Name extends string> {
  readonly #context: Context
  readonly #space: KeySpace
  readonly #layout: Layout<Name>
  readonly #older: Layout<string> | undefined
  readonly #args: readonly ScriptArg[]
  readonly #change: Calls
  readonly #read: Calls
  readonly #forget: Calls

  constructor({ context }: Primitives, operation: string, options: PermissionsOptions<Name>) {
    const { upgrade } = optionsOf('options', options, OPTION_NAMES)
    this.#layout = new Layout(options)
    this.#older = upgrade === undefined ? undefined : new Layout(upgrade, 'upgrade.')
    if (this.#older && this.#older.version >= this.#layout.version) {
      throw invalid('upgrade.version', `one below ${this.#layout.version}`, show(this.#older.version))
    }
    const moves = this.#older
      ? movesFrom(this.#older, optionsOf('upgrade', upgrade, UPGRADE_NAMES).renamed, this.#layout)
      : ''
    this.#args = [this.#layout.hash, this.#layout.bytes, this.#older?.hash ?? '', this.#older?.bytes ?? 0, moves]
    this.#context = context
    this.#space = new KeySpace(context, 'permissions', operation, 'subject')
    this.#change = new Calls(context, 'permissions', permissionsChange)
    this.#read = new Calls(context, 'permissions', permissionsRead)
    this.#forget = new Calls(context, 'permissions', permissionsForget)
  }

  /** All of them in one step. `changed`: those that the subject did not have. */
  async grant(subject: Subject, names: readonly Name[]): Promise<PermissionsChange<Name>> {
    const { change } = await this.#apply(subject, this.#check(names), [])
    tell(this.#context, 'permissions', change.changed.length > 0 ? 'granted' : 'unchanged')
    return change
  }

  /** All of them in one step. `changed`: those that the subject had. */
  async revoke(subject: Subject, names: readonly Name[]): Promise<PermissionsChange<Name>> {
    const { change } = await this.#apply(subject, [], this.#check(names))
    tell(this.#context, 'permissions', change.changed.length > 0 ? 'revoked' : 'unchanged')
    return change
  }

  async has(subject: Subject, name: Name): Promise<boolean> {
    oneOf('name', name, this.#layout.names)
    return (await this.list(subject)).includes(name)
  }

  /** In the order of the layout. */
  async list(subject: Subject): Promise<Name[]> {
    const scope = this.#space.scope(subject)
    return this.#layout.namesOf((await this.#read.add(scope, this.#keys(scope), this.#args)) as Buffer)
  }

  /** Moves the subject to this layout now. False: there was nothing to move. */
  async upgrade(subject: Subject): Promise<boolean> {
    return (await this.#apply(subject, [], [])).isMoved
  }

  /** Takes everything from the subject, also what can't be read. False: it had nothing. */
  async forget(subject: Subject): Promise<boolean> {
    const scope = this.#space.scope(subject)
    const isForgotten = Number(await this.#forget.add(scope, this.#keys(scope), [])) > 0
    tell(this.#context, 'permissions', 'forgotten')
    return isForgotten
  }

  async #apply(
    subject: Subject,
    grant: readonly Name[],
    revoke: readonly Name[],
  ): Promise<{ change: PermissionsChange<Name>; isMoved: boolean }> {
    const layout = this.#layout
    const scope = this.#space.scope(subject)
    const args = [...this.#args, layout.bitsOf(grant), layout.bitsOf(revoke)]
    const [moved, before, after] = (await this.#change.add(scope, this.#keys(scope), args)) as [number, Buffer, Buffer]
    if (moved === 1) tell(this.#context, 'permissions', 'upgraded')
    const names = layout.namesOf(after)
    const had = layout.namesOf(before)
    const changed = layout.names.filter((name) => had.includes(name) !== names.includes(name))
    return { change: { changed, names }, isMoved: moved === 1 }
  }

  #keys(scope: Scope): string[] {
    const versions = this.#older ? [this.#layout.version, this.#older.version] : [this.#layout.version]
    return versions.map((version) => scope.key(`v${version}`))
  }

  #check(names: unknown): readonly Name[] {
    if (!Array.isArray(names)) throw invalid('names', 'an array', show(names))
    // Not `map`, which leaves out the holes of an array.
    return Array.from(names, (name) => oneOf('names', name, this.#layout.names))
  }
}
