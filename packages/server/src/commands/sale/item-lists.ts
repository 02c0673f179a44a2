/** What a sale is to have, from the flags and files that say so. */
import { readFileSync } from 'node:fs'
import type { ItemOptions, ItemTemplate } from 'holdfast'
import { type Config, ConfigError } from '../../config/index.js'
import { itemList, oneItem } from '../../config/options/sales.js'

export function itemsOf({ saleItems, saleItemsFile: file }: Config): readonly ItemOptions[] {
  if ((saleItems === undefined) === (file === undefined)) {
    const got = file === undefined ? 'neither' : 'both'
    throw new ConfigError(`Expected either --items or --items-file, got ${got}`)
  }
  return saleItems ?? readItems(file as string)
}

/** Also by a template, for sales that come again and again. */
export function itemsOrTemplate(config: Config): readonly ItemOptions[] | ItemTemplate {
  const { saleItems, saleItemsFile: file, itemTemplate: id, itemCount, itemQuantity: quantity } = config
  const given = [saleItems, file, id].filter((one) => one !== undefined).length
  if (given !== 1) {
    const got = given === 0 ? 'none' : 'several'
    throw new ConfigError(`Expected one of --items, --items-file and --item-template, got ${got}`)
  }
  if (id === undefined) return itemsOf(config)
  return { id, count: itemCount as number, ...(quantity !== undefined && { quantity }) }
}

function readItems(file: string): readonly ItemOptions[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(
      `--items-file: expected a file that can be read, got ${(error as NodeJS.ErrnoException).code}`,
    )
  }
  if (text.startsWith('[')) {
    const items = itemList(text)
    if (items) return items
    throw new ConfigError('--items-file: expected a JSON array, or one item a line, got JSON that is broken')
  }
  return text.split(/\r?\n/).map((line, at) => {
    const item = oneItem(line.trim())
    if (item) return item
    throw new ConfigError(`--items-file: expected an id or id=quantity in line ${at + 1}, got something else`)
  })
}
