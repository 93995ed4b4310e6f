import { decodeBase64 } from '../base/text/base64.ts';

/* Owns the blocks of PEM (RFC 7468), as Go's encoding/pem reads them. */

export type PemBlock = { readonly label: string; readonly bytes: Buffer };

export type PemReading = {
  readonly blocks: readonly PemBlock[];
  readonly problem?: string;
  /** True if reading stopped at a broken block; more may follow it. */
  readonly isBroken?: boolean;
};

const BEGIN = /^-----BEGIN (.*)-----$/;

/**
 * Reads blocks up to the last byte. Other text may stand before a block and between blocks. A
 * block that Go would skip because it is broken is a problem here, and so is text after the last.
 */
export function readPem(text: string): PemReading {
  const blocks: PemBlock[] = [];
  const lines = text.split('\n').map((line) => line.replace(/(?<![ \t\r])[ \t\r]+$/, ''));
  if (lines.at(-1) === '' && text.endsWith('\n')) lines.pop();
  const last = lines.findLastIndex((line) => line.includes('-----'));
  for (let at = 0; at <= last; at++) {
    const end = findEnd(lines, at);
    if (end === 'text') continue;
    const block = end === 'broken' ? undefined : readBlock(lines, at, end);
    if (block === undefined || end === 'broken')
      return { blocks, problem: `block ${blocks.length + 1} is broken`, isBroken: true };
    blocks.push(block);
    at = end;
  }
  const isFollowed = blocks.length > 0 && last < lines.length - 1;
  return { blocks, ...(isFollowed && { problem: 'has text after the last block' }) };
}

/** The last line of the block that begins at a line. */
function findEnd(lines: readonly string[], at: number): number | 'text' | 'broken' {
  const line = lines[at] ?? '';
  const label = BEGIN.exec(line)?.[1];
  if (label === undefined) return /-----(?:BEGIN|END)/.test(line) ? 'broken' : 'text';
  let end = at + 1;
  while (end < lines.length && lines[end]?.includes('-----') === false) end++;
  return lines[end] === `-----END ${label}-----` ? end : 'broken';
}

function readBlock(lines: readonly string[], at: number, end: number): PemBlock | undefined {
  const bytes = decodeBody(lines.slice(at + 1, end));
  return bytes && { label: BEGIN.exec(lines[at] ?? '')?.[1] ?? '', bytes };
}

/** Headers (RFC 1421) may precede the text, with an empty line between. */
function decodeBody(lines: readonly string[]): Buffer | undefined {
  const first = lines.findIndex((line) => !/^[A-Za-z][A-Za-z0-9-]*:/.test(line));
  return decodeBase64(lines.slice(Math.max(first, 0)).join('').replaceAll(/[ \t]/g, ''));
}
