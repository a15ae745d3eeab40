// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/test/earlier"
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

// patchBefore is the last commit that built Kubernetes 1.36.3.
const patchBefore = "3bd22292853eaa6100094be51d54828f4152e0dd"

// handsOverAll is the first commit whose process of a VPC hands its sockets over as fronts do: that of a Muster before it
// is ended, which cuts connections by private endpoints once (docs/upgrading.md).
const handsOverAll = "c31dcc410c8b570dfe5f7741ebafb671d2363d27"

// TestProbedInFull asks by the front's port and by the private endpoint, over new connections and kept ones, 240 times a
// second, besides 50 watches, logs of a pod, an aggregated API, a webhook and the review of tokens: while an earlier
// Muster is replaced by this one, Kubernetes by its next patch, a flag is changed and the service killed, the front is
// replaced, and the cluster is taken to the next minor and back, nothing fails. That the prober sees failures is shown by
// a front and a kube-apiserver that are killed.
//
//story:about plane/planefront plane/planerollout plane/component cluster/updatecontroller cluster/session
//story:needs kubernetes MINOR=1.37
func TestProbedInFull(t *testing.T) {
	root, kubernetes := filepath.Join("..", ".."), filepath.Join(release.Default().Minor(), "kubernetes")
	before, err := earlier.Programs(t.Context(), root, handsOverAll, programs(t))
	if err != nil {
		t.Fatal(err)
	}
	patch, patched, err := earlier.Kubernetes(t.Context(), root, patchBefore)
	if err != nil {
		t.Fatal(err)
	}
	bin, now := ownPrograms(t, before), ownPrograms(t, programs(t))
	for _, dir := range []string{bin, now} {
		linkProgram(t, patch, filepath.Join(dir, kubernetes))
	}
	i := newInstallation(t)
	i.bin = bin
	i.muster("up", "--nodes", "1", "--timeout", "3m")
	i.isVersion(patched)
	full := i.fullProber()

	i.window(full, "Muster was replaced", func() {
		i.replacePrograms(now, bin)
		i.muster("up", "--timeout", "5m")
		i.isVersion(patched)
	})
	i.window(full, "Kubernetes was replaced by its next patch", func() {
		linkProgram(t, filepath.Join(programs(t), kubernetes), filepath.Join(bin, kubernetes))
		i.muster("up", "--timeout", "5m")
		i.isVersion(release.Default().Version)
	})
	i.window(full, "a flag was changed and the service killed", func() {
		_, other := i.slots()
		i.eventTTL("20m")
		i.eventually("the newcomer runs", func() error { return i.runs(other) })
		i.kill("serve")
		i.serves(other, "20m")
	})
	i.window(full, "the front was replaced", func() {
		before := i.fronts()
		i.replaceProgram("muster-plane-front")
		i.kill("serve")
		i.eventually("the next front serves", func() error { return i.frontIs(func(pid int) bool { return pid != before[0].PID }) })
	})
	next := minorAfter(release.Default())
	i.window(full, "the cluster was taken to the next minor", func() {
		i.update("upgrade", fmt.Sprintf("type: VersionUpdate, change: {version: %q}", next.Minor()))
		i.isVersion(next.Version)
	})
	i.window(full, "the cluster was taken back", func() {
		i.update("back", fmt.Sprintf("type: VersionRollback, change: {version: %q}", release.Default().Minor()))
		i.isVersion(release.Default().Version)
	})

	i.control(full, "connections were cut", func() {
		for _, front := range i.fronts() {
			if err := syscall.Kill(front.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	})
	serving, _ := i.slots()
	i.control(full, "kube-apiserver was killed", func() { i.kill(serving) })
}

// linkProgram puts a program at a path, in one step, as a link to its file.
func linkProgram(t *testing.T, program, path string) {
	t.Helper()
	if err := errors.Join(os.Link(program, path+".new"), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// isVersion waits until the cluster is Ready and its API server says that it is a version.
func (i *installation) isVersion(version string) {
	i.t.Helper()
	i.ready()
	i.eventually("the cluster is "+version, func() error {
		said, err := i.kubectl("--context", "muster", "get", "--raw", "/version")
		if err == nil && !strings.Contains(said, `"`+version+`"`) {
			err = errors.New(said)
		}
		return err
	})
}

// slots are the API server that runs alone, and the one that is next.
func (i *installation) slots() (serving, other string) {
	i.t.Helper()
	serving, other = component.APIServerName(0), component.APIServerName(1)
	i.eventually("one API server runs", func() error {
		running, err := i.running()
		if _, first := running[serving]; err == nil && !first {
			serving, other = other, serving
		}
		if _, both := running[other]; err == nil && both {
			err = errors.New("both run")
		}
		return err
	})
	return serving, other
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
		Doors: []prober.Door{i.privateDoor(machine)},
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
