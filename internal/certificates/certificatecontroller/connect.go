// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/certificates/csrcontroller"
)

// connection reads a kubeconfig, or finds the cluster that this pod is in. The client's own limits are off: the API
// server's flow control knows better how busy it is.
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

func client(config *rest.Config) (*kubernetes.Clientset, error) {
	c, err := kubernetes.NewForConfig(tuned(config))
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// tuned speaks protobuf, and HTTP/1.1 on a connection for each worker: both cost both sides less. HTTP/2 on one
// connection took a tenth more processor time here and there, and a fifth fewer requests got through
// (docs/benchmarks.md).
//
// Over HTTP/2 client-go notices within 45 seconds that the other side of a watch went away without a word, as behind a
// firewall that forgot the connection. Here the kernel has to, and would take nearly three minutes, when no fact may be
// older than two.
func tuned(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.NextProtos = []string{"http/1.1"}
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: dialWithin, KeepAliveConfig: lively()}).DialContext
	}
	return config
}

// lively notices after 35 seconds that nobody is there any more.
func lively() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}
}

// mostWorkers is how many connections are kept: client-go keeps 25 (transport.tlsTransportCache), and more workers
// would open new ones all the time; 0 means no limit.
func mostWorkers(w csrcontroller.Writer) int {
	if _, direct := w.(*writes); direct {
		return 0
	}
	return 24
}
