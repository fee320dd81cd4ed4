// What `kf app` and its JSON say of how instances are replaced.

export interface DeploymentDetails {
  id: string;
  /** 'Accepted': no controller has taken it up. */
  phase: string;
  /** In the words of cf. */
  status: 'DEPLOYING' | 'PAUSED' | 'CANCELING' | 'DEPLOYED' | 'CANCELED' | 'STOPPED';
  strategy: 'rolling' | 'canary' | 'recreate';
  maxInFlight: number;
  /** Of a paused canary: the commands that go on and back. */
  next?: { continue: string; cancel: string };
  /** Of a canary with instance steps. */
  canary?: { step: number; steps: number };
  reason?: string;
  message?: string;
  since?: string;
  /** It is active, and no controller answers: nothing happens to it. */
  standsStill?: true;
}

/** How changes that ask for no strategy replace the instances, and whose label says so. */
export interface StrategyDefault {
  strategy: 'rolling' | 'recreate';
  of: 'app' | 'space';
}
