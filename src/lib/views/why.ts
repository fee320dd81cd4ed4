// `why`: the cause in one sentence, the evidence, and the command to try.

import { causeMeanings, readCause } from '../api/causes.ts';
import type { RevisionChange, WhyDetails } from '../api/results.ts';
import { line, message, pairs, table, type Block, type Cell } from './block.ts';
import { eventDate, longDate } from './dates.ts';
import { changedValues } from './revisions.ts';

const sentence = (text: string): Block => ({ type: 'table', header: false, rows: [[message(text)]] });

/** The change that failed, beside what fails now. */
function failedChangeOf({ failedChange }: WhyDetails): Block[] {
  if (failedChange === undefined) return [];
  const version = failedChange.version === undefined ? '' : ` (version ${failedChange.version})`;
  return [sentence(`The last change of the app failed${version}: ${failedChange.message}`)];
}

function factsOf({ version, failedChange, ...details }: WhyDetails, timeZone: string | undefined): Block[] {
  const { cause, process, instance, container, exitCode, since } = details;
  const code = readCause(cause);
  const served = failedChange === undefined ? '' : ', which served last';
  const place = [process, instance === undefined ? undefined : `instance ${instance}`].filter((part) => part !== undefined).join(', ');
  const facts: [string, Cell | undefined][] = [
    ['cause:', cause === undefined ? undefined : `${cause} (${causeMeanings[code]})`],
    ['version:', version === undefined ? undefined : `${version}${served}`],
    ['process:', place === '' ? undefined : place],
    ['container:', container],
    ['exit code:', exitCode?.toString()],
    ['since:', since === undefined ? undefined : longDate(since, timeZone)],
  ];
  const known = facts.filter((fact): fact is [string, Cell] => fact[1] !== undefined);
  return known.length === 0 ? [] : [line(), pairs(...known)];
}

function logOf({ log, logLost }: WhyDetails): Block[] {
  if (log === undefined || log.tail.length === 0) return logLost === undefined ? [] : [line(), line(`no last lines: ${logLost}`)];
  const { head, omitted, tail } = log;
  const gap = omitted === 0 ? [] : [`... ${omitted} ${omitted === 1 ? 'line' : 'lines'} left out ...`];
  return [line(), line('last lines:'), ...[...head, ...gap, ...tail].map((text) => line(`   ${text}`))];
}

function eventsOf({ events }: WhyDetails, timeZone: string | undefined): Block[] {
  if (events.length === 0) return [];
  const rows = events.map((event) => [
    eventDate(event.time, timeZone),
    event.object,
    event.reason,
    event.message.replaceAll(/\s+/g, ' ').trim(),
  ]);
  return [line(), table(['time', 'object', 'event', 'description'], rows)];
}

function changeText(changed: RevisionChange): string[] {
  const { what, name, change } = changed;
  return [name === undefined ? what : `${what} ${name}`, change, changedValues(changed)];
}

function changesOf({ changed }: WhyDetails): Block[] {
  if (changed === undefined) return [];
  const before = `version ${changed.from}, which served last`;
  if (changed.changes.length === 0) {
    const rest = `droplet, source and commit are those of ${before}; variables, commands and sidecars were not compared`;
    return [line(), line(changed.complete ? `nothing has changed since ${before}` : rest)];
  }
  return [line(), line(`changed since ${before}:`), { type: 'table', header: false, indent: '   ', rows: changed.changes.map(changeText) }];
}

/** @param timeZone default: the local one */
export function renderWhy(details: WhyDetails, timeZone?: string): Block[] {
  const { next } = details;
  return [
    sentence(details.message),
    ...failedChangeOf(details),
    ...factsOf(details, timeZone),
    ...logOf(details),
    ...eventsOf(details, timeZone),
    ...changesOf(details),
    ...(next.length === 0 ? [] : [line(), line('TIP:'), ...next.map((command) => line(`   ${command}`))]),
  ];
}
