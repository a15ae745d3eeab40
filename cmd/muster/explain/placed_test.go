// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/statedir"
)

// endingPod is a pod whose container keeps ending.
func endingPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: clitest.MadeBefore("web", time.Hour)}
	pod.Namespace = "shop"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}}}
	return pod
}

func newService(name string) *corev1.Service {
	service := &corev1.Service{ObjectMeta: clitest.MadeBefore(name, time.Hour)}
	service.Namespace, service.Spec.Selector = "shop", map[string]string{"app": "web"}
	return service
}

// hostNode is the Node of a host that joined, whose kubelet is silent.
func hostNode() *corev1.Node {
	node := &corev1.Node{ObjectMeta: clitest.MadeBefore("rack-1", time.Hour)}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status."}}
	return node
}

// Objects of a cluster are explained by their names.
func TestObjectsOfClusters(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: clitest.MadeBefore("data", time.Hour)}
	claim.Namespace, claim.Status.Phase = "default", corev1.ClaimBound
	for args, test := range map[string]struct {
		code int
		want string
	}{
		"pod shop/web":              {1, "M-POD-95"},
		"po shop/web":               {1, "kubectl logs web --namespace shop --previous"},
		"pod web":                   {2, "there is no pod default/web"},
		"pod shop/":                 {2, "must be NAMESPACE/NAME"},
		"pod a/b/c":                 {2, "must be NAMESPACE/NAME"},
		"volume data":               {0, "volume default/data: nothing is wrong"},
		"pvc default/data":          {0, "nothing is wrong"},
		"service shop/web":          {1, "M-POD-80"},
		"host rack-1":               {1, "M-READY-65"},
		"host nobody":               {2, "there is no Node"},
		"host " + clitest.FirstNode: {2, "muster explain machine " + clitest.FirstMachine},
	} {
		b := world(t, endingPod(), claim, newService("web"), hostNode())
		if got := run(t, b, strings.Fields(args)...); got != test.code || !strings.Contains(b.Out.String()+b.Err.String(), test.want) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", args, got, test.code, test.want, b.Out.String(), b.Err.String())
		}
	}
	b := withAnother(t, true)
	if got := run(t, b, "pod", "shop/web"); got != 4 || !strings.Contains(b.Err.String(), "other could not be asked") {
		t.Errorf("where a cluster is away: exit code %d, %q", got, b.Err.String())
	}
}

// elsewhere runs "muster explain" as with --kubeconfig, with no management plane.
func elsewhere(t *testing.T, b *clitest.Bench, args ...string) int {
	t.Helper()
	b.Planes.Management = func(*terminal.Options) (*kinds.Client, error) { return nil, errors.New("nothing is set up") }
	cmd := &explainCommand{Options: b.O, planes: b.Planes, now: func() time.Time { return clitest.Noon }, catalogue: cause.Default, status: statusOf}
	cmd.elsewhere = func(*terminal.Options) (*kinds.Client, error) {
		return &kinds.Client{WithWatch: b.Client, Name: kinds.TheCluster, Address: "10.0.0.1:6443", Elsewhere: true}, nil
	}
	return runOf(t, b, cmd, args...)
}

// With --kubeconfig the cluster is any, and nothing of a management plane is asked for.
func TestElsewhere(t *testing.T) {
	denied := &certificatesv1.CertificateSigningRequest{ObjectMeta: clitest.MadeBefore("denied", time.Minute)}
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "x", Message: "no"}}
	objects := []client.Object{hostNode(), endingPod(), newService("web"), denied}
	for args, test := range map[string]struct {
		code int
		want string
	}{
		"":                  {1, "node rack-1: the cause is known"},
		"-o json":           {1, `"name": "denied"`},
		"node rack-1":       {1, "M-READY-65"},
		"csr denied":        {1, "M-TLS-38"},
		"pod shop/web":      {1, "M-POD-95"},
		"machine i-1":       {2, "a machine is in the management plane"},
		"nodegroup default": {2, "KIND is one of: node, csr, pod, volume, service, host"},
		"--bundle x":        {2, "--bundle is of an installation"},
		"node nobody":       {2, "not found"},
	} {
		b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
		if got := elsewhere(t, b, strings.Fields(args)...); got != test.code || !strings.Contains(b.Out.String()+b.Err.String(), test.want) {
			t.Errorf("%q: exit code %d, want %d with %q\n%s%s", args, got, test.code, test.want, b.Out.String(), b.Err.String())
		}
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, clitest.World()...)
	if got := elsewhere(t, b); got != 0 || !strings.Contains(b.Out.String(), "Nothing is wrong") {
		t.Errorf("of a cluster that is well: exit code %d, %s", got, b.Out.String())
	}
	b = clitest.NewBench(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("not for you")
	}})
	if got := elsewhere(t, b); got != 4 || !strings.Contains(b.Err.String(), "not for you") {
		t.Errorf("of a cluster that lets nothing be read: exit code %d, %s", got, b.Err.String())
	}
}

// A pod whose environment leads to no credentials has that cause, too; a service that cannot be asked is told.
func TestIdentityOfAPod(t *testing.T) {
	pod := endingPod()
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	missing := podidentity.Explanation{Way: podidentity.ByPodIdentity, Ways: []podidentity.Way{{Way: podidentity.ByPodIdentity, Code: podidentity.CodeNoAssociation, Why: "it has none"}}}
	for name, test := range map[string]struct {
		is   podidentity.Explanation
		err  error
		code int
		want string
	}{
		"it asks for no role": {podidentity.Explanation{}, nil, 0, "nothing is wrong"},
		"no association":      {missing, nil, 1, "M-POD-83"},
		"the service is away": {podidentity.Explanation{}, errors.New("nobody answers"), 0, "the IAM identity of shop/web: nobody answers"},
	} {
		b := world(t, pod)
		cmd := &explainCommand{Options: b.O, planes: b.Planes, now: func() time.Time { return clitest.Noon }, catalogue: cause.Default}
		cmd.identity = func(_ context.Context, _ statedir.Dir, cluster, namespace, pod string) (podidentity.Explanation, error) {
			if cluster != "home" || namespace != "shop" || pod != "web" {
				t.Errorf("asked for %s/%s of %s", namespace, pod, cluster)
			}
			return test.is, test.err
		}
		if got := runOf(t, b, cmd, "pod", "shop/web"); got != test.code || !strings.Contains(b.Out.String(), test.want) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", name, got, test.code, test.want, b.Out.String(), b.Err.String())
		}
	}
}
