// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/certificates"
)

// connection reads a kubeconfig, or finds the cluster that this pod is in. The client's own limits are off: the API server's flow
// control knows better how busy it is.
func connection(kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("finding the cluster that this pod is in (elsewhere, name it with --kubeconfig): %w", err)
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	config.UserAgent = "muster-certificate-controller"
	return config, nil
}

// client speaks protobuf, and HTTP/1.1 on a connection for each worker: both cost both sides less. HTTP/2 on one connection took a tenth
// more processor time here and there, and a fifth fewer requests got through (docs/benchmarks.md).
func client(config *rest.Config) (*kubernetes.Clientset, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.NextProtos = []string{"http/1.1"}
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// mostWorkers is how many connections are kept: client-go keeps 25 (transport.tlsTransportCache), and more workers would open new ones
// all the time; 0 is no limit.
func mostWorkers(w certificates.Writer) int {
	if _, direct := w.(*writes); direct {
		return 0
	}
	return 24
}
