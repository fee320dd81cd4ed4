// The pod and container settings that PodSecurity "restricted" requires.

/** A container whose pod sets the user. */
export const unprivilegedContainer = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' as const },
};

export const nonRootContainer = { ...unprivilegedContainer, runAsNonRoot: true };

/** The containers of kf itself: they write only to their volumes. */
export const restrictedContainer = { ...nonRootContainer, readOnlyRootFilesystem: true };

export const restrictedPod = {
  runAsNonRoot: true,
  runAsUser: 1000,
  runAsGroup: 1000,
  fsGroup: 1000,
  seccompProfile: { type: 'RuntimeDefault' },
};
