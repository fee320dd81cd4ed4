// Command netpol enforces the NetworkPolicies of a cluster on one node: the policy part of kube-router alone, without its routing and its proxy.
package main

import (
	"flag"
	"os"
	"sync"
	"time"

	"github.com/cloudnativelabs/kube-router/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file")
	node := flag.String("node", "", "name of the node")
	services := flag.String("service-cidr", "", "range of the Services' addresses")
	flag.Parse()
	if err := enforce(*kubeconfig, *node, *services); err != nil {
		klog.Error(err)
		os.Exit(1)
	}
}

// enforce follows pods, namespaces and policies and keeps iptables and ipsets as they say. It ends only with an error.
func enforce(kubeconfig, node, services string) error {
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	config := options.NewKubeRouterConfig()
	config.HostnameOverride = node
	config.ClusterIPCIDR = services
	config.IPTablesSyncPeriod = 30 * time.Second

	stop := make(chan struct{})
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &sync.Mutex{})
	if err != nil {
		return err
	}
	pods.AddEventHandler(controller.PodEventHandler)
	policies.AddEventHandler(controller.NetworkPolicyEventHandler)
	namespaces.AddEventHandler(controller.NamespaceEventHandler)

	// The controller tells its health to a channel that somebody must read.
	beats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range beats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(beats, stop, &running)
	return nil
}
