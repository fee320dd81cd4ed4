import { resolve } from 'node:path';
import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { numberFlag } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { parseChoice } from '../lib/cf/values.ts';
import { defined } from '../lib/defined.ts';
// Every start loads this module, so it is not loaded on its own.
import { saveSettings } from '../lib/session/settings.ts';

interface Result {
  asyncTimeoutMinutes?: number;
  color?: string;
  trace?: string;
}

const isBoolean = (text: string): boolean => /^(true|false)$/i.test(text);

export default class Config extends KfCommand<Result> {
  static override summary = 'save settings of kf on this computer';
  static override examples = ['kf config --color false', 'kf config --trace trace.log', 'kf config --async-timeout 30'];
  static override seeAlso = ['delete', 'delete-org', 'delete-space'];
  static override flags = {
    'async-timeout': numberFlag({
      name: 'async-timeout',
      least: 1,
      summary: 'minutes that delete (1), delete-org and delete-space (15) wait',
      helpValue: 'TIMEOUT_IN_MINUTES',
    }),
    color: Flags.custom<string>({
      parse: (text) => Promise.resolve().then(() => parseChoice(text, 'COLOR', ['true', 'false'])),
      summary: 'colours, as CF_COLOR (true or false)',
      helpValue: 'COLOR',
    })(),
    locale: Flags.string({ summary: 'no effect: kf speaks English', helpValue: 'LOCALE' }),
    trace: Flags.string({ summary: 'print API requests, as CF_TRACE (true, false or a file)', helpValue: 'TRACE' }),
  };

  async run(): Promise<Result> {
    const { flags } = await this.parse(Config);
    const { 'async-timeout': minutes, color, locale, trace } = flags;
    if ([minutes, color, locale, trace].every((value) => value === undefined)) throw incorrectUsage('at least one flag must be provided');
    this.say`Setting values in config...`;
    if (locale !== undefined) this.warn('--locale has no effect: kf speaks English.');
    // A relative file would be another one in each folder.
    const Trace = trace === undefined || isBoolean(trace) ? trace?.toLowerCase() : resolve(trace);
    const saved = saveSettings(this.frame.env, defined({ AsyncTimeout: minutes, ColorEnabled: color, Trace }));
    this.ok();
    return defined({ asyncTimeoutMinutes: saved.AsyncTimeout, color: saved.ColorEnabled, trace: saved.Trace });
  }
}
