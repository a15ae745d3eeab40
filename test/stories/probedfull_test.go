// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/test/prober"
)

// A window of the full prober is a minute before a change and two minutes after it, at 240 requests a second.
const (
	fullEach   = 50 * time.Millisecond
	fullBefore = 240 * 60
	fullAfter  = 240 * 120
)

// logs is a pod that says something.
const logs = `{apiVersion: v1, kind: Pod, metadata: {name: logs}, spec: {restartPolicy: Never, containers: [{name: logs, image: muster.dev/workload:v1, imagePullPolicy: IfNotPresent, args: [env]}]}}`

// TestProbedInFull asks by the front's port and by the private endpoint, over new connections and kept ones, 240 times a
// second, besides 50 watches, logs of a pod, an aggregated API, a webhook and the review of tokens: while a flag is
// changed and the service killed, while Kubernetes' program is replaced, and while the front is, nothing fails. That the
// prober sees failures is shown by a front and a kube-apiserver that are killed.
//
//story:about plane/planefront plane/planerollout plane/component
func TestProbedInFull(t *testing.T) {
	bin := ownPrograms(t, programs(t))
	i := newInstallation(t)
	i.bin = bin
	i.muster("up", "--nodes", "1", "--timeout", "3m")
	full := i.fullProber()
	first, second := component.APIServerName(0), component.APIServerName(1)

	i.window(full, "a flag was changed and the service killed", func() {
		i.eventTTL("20m")
		i.eventually("the newcomer runs", func() error { return i.runs(second) })
		i.kill("serve")
		i.serves(second, "20m")
	})
	i.window(full, "the front was replaced", func() {
		before := i.fronts()
		i.replaceProgram("muster-plane-front")
		i.kill("serve")
		i.eventually("the next front serves", func() error { return i.frontIs(func(pid int) bool { return pid != before[0].PID }) })
	})
	i.window(full, "Kubernetes' program was replaced", func() {
		i.replaceProgram(filepath.Join(release.Default().Minor(), "kubernetes"))
		i.muster("up", "--timeout", "5m")
		i.serves(first, "20m")
	})

	i.control(full, "connections were cut", func() {
		for _, front := range i.fronts() {
			if err := syscall.Kill(front.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	})
	i.control(full, "kube-apiserver was killed", func() { i.kill(first) })
}

// window has the full prober ask before, while and after something is done. Nothing may fail.
func (i *installation) window(full prober.Config, while string, do func()) {
	i.t.Helper()
	p := side{i, clusterconfig.DefaultClusterName}.startProber(full)
	i.asks(p, fullBefore)
	do()
	i.asks(p, fullAfter)
	if seen := i.failedNothing(p, while); seen.Asked < fullBefore+fullAfter {
		i.t.Errorf("it asked %d times", seen.Asked)
	}
}

// control has the full prober ask while something is done that clients see: it must say so.
func (i *installation) control(full prober.Config, while string, do func()) {
	i.t.Helper()
	p := side{i, clusterconfig.DefaultClusterName}.startProber(full)
	i.asks(p, 1000)
	do()
	i.asks(p, 2000)
	seen := p.Stop()
	if i.t.Logf("while %s: %s", while, seen); seen.Causes["cut"] == 0 {
		i.t.Errorf("%s, and the prober saw nothing of it", while)
	}
	i.ready()
}

// fullProber makes what the full prober asks for besides Leases.
func (i *installation) fullProber() prober.Config {
	i.t.Helper()
	i.muster("create", "addon", "metrics-server", "--wait")
	i.apply(logs)
	i.mustKubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/logs", "--timeout=90s")
	i.eventually("the aggregated API knows the node", func() error {
		_, err := i.kubectl("top", "nodes")
		return err
	})
	machines := i.namespacesOf(clusterconfig.DefaultClusterName)
	address := slices.Sorted(maps.Keys(machines))[0]
	machine := machines[address]
	webhook, ca := webhookIn(i.t, machine, address, true)
	i.mustRead(fmt.Sprintf(byURL, webhook, base64.StdEncoding.EncodeToString(ca)), "apply", "-f", "-")
	token := i.mustKubectl("create", "token", "default", "--duration=2h")
	const name = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"asked-"}}`
	return prober.Config{
		Every: fullEach, Watches: 50,
		Doors: []prober.Door{{Name: "private endpoint", Address: net.JoinHostPort(i.endpoint(), "443"), Dial: func(ctx context.Context, network, address string) (connection net.Conn, err error) {
			err = host.InNetwork(machine, func() error {
				connection, err = new(net.Dialer).DialContext(ctx, network, address)
				return err
			})
			return connection, err
		}}},
		More: []prober.Call{
			{
				Name: "TokenReview", Method: http.MethodPost, Path: "/apis/authentication.k8s.io/v1/tokenreviews", Says: `"authenticated":true`,
				Body: fmt.Sprintf(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":%q}}`, strings.TrimSpace(token)),
			},
			{Name: "logs", Method: http.MethodGet, Path: "/api/v1/namespaces/default/pods/logs/log", Says: "KUBERNETES_SERVICE_HOST"},
			{Name: "aggregated API", Method: http.MethodGet, Path: "/apis/metrics.k8s.io/v1beta1/nodes", Says: `"NodeMetrics`},
			{Name: "webhook", Method: http.MethodPost, Path: "/api/v1/namespaces/by-url/configmaps?dryRun=All", Body: name, Says: `"asked-`},
		},
	}
}

// runs says that a component does not run.
func (i *installation) runs(name string) error {
	running, err := i.running()
	if _, ok := running[name]; err == nil && !ok {
		err = fmt.Errorf("%s does not run", name)
	}
	return err
}
