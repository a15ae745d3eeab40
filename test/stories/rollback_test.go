// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/release"
)

// TestRollbackOfACluster takes a cluster to the next minor although an insight is against it, by force, and back again by
// an Update, while the cluster is asked and watched: nothing fails, though the service is killed meanwhile. A node group of
// the newer minor is against the way back, and so are objects that the older minor does not serve. An upgrade is taken back
// once.
//
//story:about plane/planerollout cluster/insight cluster/clustercontroller cluster/serve cluster/updatecontroller
//story:needs kubernetes MINOR=1.37
func TestRollbackOfACluster(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "1", "--timeout", "3m")
	is, next := release.Default(), minorAfter(release.Default())
	i.nodesAre(is)
	i.force(is, next)

	back := fmt.Sprintf("type: VersionRollback, change: {version: %q}", is.Minor())
	group := func(version string) {
		i.mustKubectl(managementContext, "-n", "muster", "patch", "nodegroup", "default", "--type", "merge", "-p", fmt.Sprintf(`{"spec":{"version":%q}}`, version))
	}
	group(next.Minor())
	i.failsBecause("newer-nodes", back, fmt.Sprintf("node group default: machines of %s would be newer than their cluster, which runs %s", next.Minor(), is.Minor()))
	i.runsOn(next)
	group(is.Minor())
	const migration = "{apiVersion: storagemigration.k8s.io/v1, kind: StorageVersionMigration, metadata: {name: against}, spec: {resource: {group: '', resource: configmaps}}}"
	i.apply(migration, "--context", "muster")
	i.failsBecause("newer-objects", back, "Objects that the minor before does not serve")
	i.runsOn(next)
	i.mustKubectl("--context", "muster", "delete", "storageversionmigration", "against")

	before := i.processes()
	p := i.probe()
	i.asks(p, 100)
	i.update("back", back)
	i.asks(p, 200)
	i.failedNothing(p, "the control plane was taken back")
	if said := i.mustKubectl("--context", "muster", "get", "--raw", "/version"); !strings.Contains(said, is.Version) {
		t.Errorf("it says that it is %s", said)
	}
	for _, name := range []string{component.ControllerManager, component.Scheduler} {
		if now := i.processes()[name]; now.PID == before[name].PID {
			t.Errorf("%s is process %d, as before the rollback", name, now.PID)
		}
	}
	i.nodesAre(is)

	older := release.All()[1]
	i.asksVersion(older.Minor())
	i.saysReady("cluster/muster", fmt.Sprintf("the control plane runs %s, and is not taken back to %s, as it was taken back from %s at ", is.Minor(), older.Minor(), next.Minor()))
	i.asksVersion(is.Minor())
	i.ready()
}

// force takes the cluster to the next minor although nobody answers a webhook. It is asked about new namespaces, and an
// API server makes none where all of Kubernetes' are there.
func (i *installation) force(is, next release.Release) {
	i.t.Helper()
	i.apply(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: nobody}, webhooks: [{name: nobody.muster.dev, failurePolicy: Fail, `+
		`sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {namespace: default, name: nobody}}, `+
		`rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}]}]}`, "--context", "muster")
	against := "spec.version: insights are against " + next.Minor() + " (M-UPDATE-71): Webhooks that nobody answers: 1 webhooks fail closed, and nobody answers (/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/nobody)"
	before := i.processes()[component.APIServer]
	i.failsBecause("unforced", fmt.Sprintf("type: VersionUpdate, change: {version: %q}", next.Minor()), against+": mend that, or go on all the same by the annotation muster.dev/force-version="+next.Minor())
	i.explains("update", "unforced", 1, "M-UPDATE-71")
	i.runsOn(is)
	if now := i.processes()[component.APIServer]; now.PID != before.PID {
		i.t.Errorf("kube-apiserver was process %d and is %d", before.PID, now.PID)
	}
	i.update("forced", fmt.Sprintf("type: VersionUpdate, change: {version: %q, force: true}", next.Minor()))
	i.mustKubectl("--context", "muster", "delete", "validatingwebhookconfiguration", "nobody")
}

// runsOn sets the version of the cluster back to the one that it runs.
func (i *installation) runsOn(is release.Release) {
	i.t.Helper()
	i.asksVersion(is.Minor())
	i.saysReady("cluster/muster", "the API server answers")
}

// failsBecause makes an Update that fails, and says why.
func (i *installation) failsBecause(name, spec, why string) {
	i.t.Helper()
	i.requestUpdate(name, spec)
	i.updateIs(name, `"phase":"Failed"`)
	if said := i.mustKubectl(managementContext, "-n", "muster", "get", "update", name, "-o", "jsonpath={.status.errors}"); !strings.Contains(said, why) {
		i.t.Errorf("update %s failed with %s, which does not say %q", name, said, why)
	}
}
