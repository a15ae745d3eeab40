// SPDX-License-Identifier: Apache-2.0

package podnotice

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// failure is a kubelet's Event, with what containerd says.
func failure(image, words string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "web.17"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web", UID: "pod-uid", FieldPath: "spec.containers{web}"},
		Type:           corev1.EventTypeWarning, Reason: "Failed",
		Message: `Failed to pull image "` + image + `": failed to pull and unpack image "docker.io/library/` + image + `": failed to resolve reference "docker.io/library/` + image + `": ` + words,
	}
}

// noSandbox is one about a pod that gets none.
func noSandbox(words string) *corev1.Event {
	e := failure("", "")
	e.Reason, e.Message = "FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error: code = Unknown desc = "+words
	return e
}

const head = "unexpected status from HEAD request to https://000000000000.dkr.ecr.us-east-1.amazonaws.com/v2/library/myapp/manifests/dev?ns=docker.io: 403 Forbidden\n"

func TestDecide(t *testing.T) {
	t.Parallel()
	const load = ". If it was built here: docker save myapp:dev | muster image load -"
	for name, test := range map[string]struct {
		event *corev1.Event
		want  string
	}{
		"nobody has it":          {failure("myapp:dev", head+"denied: docker.io answers 401 Unauthorized: authentication required"), "image myapp:dev is not loaded (M-POD-81), and docker.io answers 401 Unauthorized: authentication required" + load},
		"no way out":             {failure("myapp:dev", head+"denied: vpc-1 has no way out (spec.egress.mode of the VPC), and this was not pulled before: use `muster image load`, or mode NAT"), "image myapp:dev is not loaded (M-POD-81), and vpc-1 has no way out (spec.egress.mode of the VPC), and this was not pulled before: use `muster image load`, or mode NAT" + load},
		"not found":              {failure("myapp:dev", "docker.io/library/myapp:dev: not found"), "image myapp:dev is not loaded (M-POD-81), and no registry has it" + load},
		"too many requests":      {failure("myapp:dev", head+"toomanyrequests: docker.io answers 429 Too Many Requests"), "image myapp:dev is not loaded (M-POD-81), and docker.io answers 429 Too Many Requests" + load},
		"no network":             {failure("myapp:dev", head+"unavailable: asking docker.io: lookup registry-1.docker.io: no such host"), "image myapp:dev is not loaded (M-POD-81), and asking docker.io: lookup registry-1.docker.io: no such host" + load},
		"the account's registry": {failure("000000000000.dkr.ecr.us-east-1.amazonaws.com/app:v1", "not found: not found"), ""},
		"hostile":                {failure(`a\n\x1b[2J;rm`, "x: not found"), `image a\n\x1b[2J;rm is not loaded (M-POD-81), and no registry has it. If it was built here: docker save "a\\n\\x1b[2J;rm" | muster image load -`},
		"not quoted":             {&corev1.Event{Reason: "Failed", InvolvedObject: corev1.ObjectReference{Kind: "Pod"}, Message: "Failed to pull image x: not found"}, ""},
		"hostUsers: false":       {noSandbox(`failed to create network namespace for sandbox "e7509638538437f7599630e7f3488c3f29dcebf6f094af8a3c4caa89bd4895a9": failed to set effective UID: invalid argument`), "hostUsers: false needs user ids beyond those of the machine, which has none, as with isolation user-namespace, where every pod's root is a user of the host without rights. Leave hostUsers out, or have the pod run on a node group with isolation none"},
		"another sandbox":        {noSandbox("plugin type=\"muster-cni\" failed (add): no address is left"), ""},
		"not of a pod":           {&corev1.Event{Reason: "FailedCreatePodSandBox", InvolvedObject: corev1.ObjectReference{Kind: "Node"}, Message: noIDs}, ""},
		"another failure":        {&corev1.Event{Reason: "Failed", InvolvedObject: corev1.ObjectReference{Kind: "Pod"}, Message: "Error: ErrImagePull"}, ""},
	} {
		got := ""
		if said := decide(test.event); said != nil {
			got = said.message
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if said := decide(failure(strings.Repeat("x", 5000), "y: not found")); len(said.message) > 1024 { // validation of events.k8s.io, by which they are shown
		t.Errorf("a message of %d bytes", len(said.message))
	}
}

// A pod gets one Event for each image, however often the kubelet fails.
func TestReconcile(t *testing.T) {
	t.Parallel()
	failed, other := failure("myapp:dev", "x: not found"), failure("nginx", "x")
	other.Name, other.Message = "web.18", "Error: ErrImagePull"
	plane := fake.NewClientBuilder().WithObjects(failed, other).Build()
	r := &reconciler{cluster: plane, now: func() time.Time { return time.Unix(1000, 0) }}
	for range 2 {
		for _, name := range []string{"web.17", "web.18", "gone"} {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var all corev1.EventList
	if err := plane.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var made []corev1.Event
	for _, e := range all.Items {
		if e.Reason == reasonNotLoaded {
			made = append(made, e)
		}
	}
	if len(made) != 1 || made[0].InvolvedObject != failed.InvolvedObject || made[0].Namespace != "shop" || made[0].Type != corev1.EventTypeWarning || made[0].Source.Component != component {
		t.Errorf("Events %+v", made)
	}
}
