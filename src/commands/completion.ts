import { KfCommand } from '../base-command.ts';
import { choiceArg } from '../flags.ts';
import { completionScript, shells } from '../lib/cf/completion-scripts.ts';

interface Result {
  shell: string;
  script: string;
}

export default class Completion extends KfCommand<Result> {
  static override summary = 'print the script for a shell to complete commands and names';
  static override examples = [
    'source <(kf completion bash)',
    'kf completion zsh > "${fpath[1]}/_kf"',
    'kf completion fish > ~/.config/fish/completions/kf.fish',
  ];
  static override seeAlso = ['help', 'target'];
  static override args = { SHELL: choiceArg('SHELL', 'bash, zsh or fish', shells) };

  async run(): Promise<Result> {
    const { args } = await this.parse(Completion);
    const script = completionScript(args.SHELL, this.frame.bin);
    for (const text of script.trimEnd().split('\n')) this.terminal.out(text);
    return { shell: args.SHELL, script };
  }
}
