// Package crds keeps the Gateway API module in go.mod: the cluster installs the CRDs of its folder config/crd/standard.
package crds

import _ "sigs.k8s.io/gateway-api/apis/v1"
