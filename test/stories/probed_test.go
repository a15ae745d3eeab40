// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/test/prober"
)

// probe starts a small prober of the API server of the installation's one cluster: 60 requests a second.
func (i *installation) probe() *prober.Prober {
	i.t.Helper()
	return side{i, clusterconfig.DefaultClusterName}.probe()
}

// probe starts a small prober of the cluster's API server.
func (s side) probe() *prober.Prober {
	s.t.Helper()
	return s.startProber(small)
}

var small = prober.Config{Every: 100 * time.Millisecond, Watches: 4}

// startProber starts a prober that comes by the front's port, and by other doors that are given, in a namespace of its
// own. A story that ends before it has stopped the prober says what that saw.
func (s side) startProber(c prober.Config) *prober.Prober {
	s.t.Helper()
	return s.startProberBy(s.dir.Cluster(s.cluster).Kubeconfig(), "--context="+s.cluster, c)
}

// startProberBy is startProber of the API server of a kubeconfig, to which a context of the user's leads, too.
func (i *installation) startProberBy(kubeconfig, context string, c prober.Config) *prober.Prober {
	i.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		i.t.Fatal(err)
	}
	at, err := url.Parse(config.Host)
	if err != nil {
		i.t.Fatal(err)
	}
	if c.TLS, err = rest.TLSConfigFor(config); err != nil {
		i.t.Fatal(err)
	}
	c.Namespace = fmt.Sprintf("probed-%d", time.Now().UnixNano())
	i.mustKubectl(context, "create", "namespace", c.Namespace)
	c.Doors = append([]prober.Door{{Name: "front", Address: at.Host}}, c.Doors...)
	p, err := prober.Start(i.t.Context(), c)
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() {
		if !p.Stopped() {
			i.t.Log(p.Stop())
		}
	})
	return p
}

// asks waits until a prober has asked some more.
func (i *installation) asks(p *prober.Prober, more int) {
	i.t.Helper()
	before := p.Asked()
	i.eventually("the prober goes on", func() error {
		if n := p.Asked() - before; n < more {
			return fmt.Errorf("%d of %d requests", n, more)
		}
		return nil
	})
}

// failedNothing ends a prober, of whose requests none may have failed, and one in a hundred may have been repeated.
func (i *installation) failedNothing(p *prober.Prober, while string) prober.Report {
	i.t.Helper()
	seen := p.Stop()
	if i.t.Logf("while %s: %s", while, seen); seen.Failed > 0 || seen.Repeated > seen.Asked/100 {
		i.t.Errorf("while %s %d of %d requests failed, and %d were repeated", while, seen.Failed, seen.Asked, seen.Repeated)
	}
	return seen
}
