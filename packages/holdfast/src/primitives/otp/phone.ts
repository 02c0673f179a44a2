import { invalid, options as optionsOf, show, text } from '../../input/index.js'

/** How numbers are written where no country is said. */
export interface PhoneOptions {
  /** The calling code of the country that a number without one belongs to: `49`. Default none: such a number is refused. */
  readonly country?: string
  /** What a number within the country begins with, and loses when the country stands before it. Default `0`; `1` for country 1; empty: nothing. */
  readonly trunkPrefix?: string
  /** What is dialled in place of the `+`. Default `00`; `011` for country 1. */
  readonly internationalPrefix?: string
}

const PHONE_MAX = 64
/** The most digits that E.164 has, and the fewest that there are with a country's code. */
const DIGITS_MAX = 15
const DIGITS_MIN = 7
/** What stands between digits: brackets, dots, slashes and any dash. */
const BETWEEN = /[().\p{Pd}/]/gu
/** Blanks of any kind, and the marks without a shape that come along when numbers are copied. */
const UNSEEN = /[\s\p{Cf}]/gu

/** A country's code, of which those with 1 and 2 digits are told from the others by how they begin, and zeros after it. */
const ZEROS_AFTER_CODE = /^(\+(?:[17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|\d{3}))0+/

/** Brings numbers into one form, so that all spellings of one are one: `+49 (0)171 234-5678`, `0049171…` and, in country 49, `0171 2345678`. */
export class Phones {
  readonly #country: string | null
  readonly #trunk: string
  readonly #abroad: string

  constructor(options: PhoneOptions = {}) {
    const { country, trunkPrefix, internationalPrefix } = optionsOf('options', options)
    this.#country =
      country === undefined ? null : code('country', country, /^[1-9]\d{0,2}$/, '1 to 3 digits, no 0 first')
    const isNorthAmerica = country === '1'
    this.#trunk = code('trunkPrefix', trunkPrefix ?? (isNorthAmerica ? '1' : '0'), /^\d{0,3}$/, '0 to 3 digits')
    const abroad = internationalPrefix ?? (isNorthAmerica ? '011' : '00')
    this.#abroad = code('internationalPrefix', abroad, /^\d{1,5}$/, '1 to 5 digits')
  }

  /**
   * Whose attempts those of a number are. In most countries no number begins with 0, and one that is written so is taken for the one without
   * by whoever delivers to it. In the others (39, 225, 229) two numbers that differ in nothing else are counted together.
   */
  counted(phone: string): string {
    return this.normalise(phone).replace(ZEROS_AFTER_CODE, '$1')
  }

  /** `+` and digits, the country's code first. What can't be a number is `invalid_argument`, which does not show it. */
  normalise(phone: string): string {
    const written = text('phone', phone, PHONE_MAX).normalize('NFKC').replace(UNSEEN, '')
    // Where the country is said, a 0 in brackets is the one that is dialled only within it.
    const isAbroad = this.#saysCountry(written.replace(BETWEEN, ''))
    const plain = (isAbroad ? written.replace('(0)', '') : written).replace(BETWEEN, '')
    if (!/^\+?\d+$/.test(plain)) throw invalid('phone', 'a phone number', `${show(phone)} that is none`)
    const digits = this.#withCountry(plain)
    if (!/^[1-9]/.test(digits) || digits.length < DIGITS_MIN || digits.length > DIGITS_MAX) {
      const expected = `${DIGITS_MIN} to ${DIGITS_MAX} digits with the country's code`
      throw invalid('phone', expected, `${digits.length}${digits.startsWith('0') ? ' with a 0 first' : ''}`)
    }
    return `+${digits}`
  }

  #saysCountry = (plain: string): boolean => plain.startsWith('+') || plain.startsWith(this.#abroad)

  #withCountry(plain: string): string {
    if (plain.startsWith('+')) return this.#withoutTrunk(plain.slice(1))
    if (plain.startsWith(this.#abroad)) return this.#withoutTrunk(plain.slice(this.#abroad.length))
    if (this.#country === null) throw invalid('phone', "a number with + and its country's code", 'one without')
    return this.#country + (plain.startsWith(this.#trunk) ? plain.slice(this.#trunk.length) : plain)
  }

  /**
   * `+49 0171…`, as it is often written. Only for the country that is known, and where no number begins as the prefix does: in country 7 an 8
   * is dialled first, and numbers that begin with 8 there are.
   */
  #withoutTrunk(digits: string): string {
    const country = this.#country
    const isTold = this.#trunk.startsWith('0') || (country === '1' && this.#trunk === '1')
    if (country === null || !isTold || !digits.startsWith(country)) return digits
    let number = digits.slice(country.length)
    while (number.startsWith(this.#trunk)) number = number.slice(this.#trunk.length)
    return country + number
  }
}

function code(name: string, value: unknown, form: RegExp, expected: string): string {
  if (typeof value !== 'string' || !form.test(value)) throw invalid(name, expected, show(value))
  return value
}
