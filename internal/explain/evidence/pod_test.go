// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

var web = evidence.Place{Cluster: "home", Namespace: "shop", Name: "web"}

// cluster is an API server that has objects, and refuses to list the kinds of lists that are named.
func cluster(t *testing.T, refused string, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	about := func(o client.Object) []string {
		if e, ok := o.(*corev1.Event); ok {
			return []string{e.InvolvedObject.Name}
		}
		return nil
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&corev1.Event{}, "involvedObject.name", about).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if refused == "events" {
				if _, ok := list.(*corev1.EventList); ok {
					return errors.New("not for you")
				}
			}
			if refused == "slices" {
				if _, ok := list.(*discoveryv1.EndpointSliceList); ok {
					return errors.New("not for you")
				}
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

func meta(name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: at(age)}
}

func event(kind, reason string, age time.Duration) *corev1.Event {
	e := &corev1.Event{ObjectMeta: meta(strings.ToLower("web-"+kind+"-"+reason), age), InvolvedObject: corev1.ObjectReference{Kind: kind, Name: "web", Namespace: "shop"}, Reason: reason, Message: "because", Type: corev1.EventTypeWarning}
	e.LastTimestamp = at(age)
	return e
}

func podCondition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at(10 * time.Minute)}
}

func waiting(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "because"}}
}

func ended(reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: 137, FinishedAt: at(time.Minute)}}
}

// inWords is the verdict about facts, with the causes.
func inWords(t *testing.T, f diagnosis.Facts) string {
	t.Helper()
	verdict, ids := decided(t, f)
	words := []string{string(verdict)}
	for _, id := range ids {
		words = append(words, string(id))
	}
	return strings.Join(words, " ")
}

func TestPod(t *testing.T) {
	t.Parallel()
	notReady := podCondition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [c]")
	unscheduled := func(why string) corev1.PodCondition {
		return podCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, why)
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, test := range map[string]struct {
		age        time.Duration
		phase      corev1.PodPhase
		conditions []corev1.PodCondition
		status     corev1.ContainerStatus
		events     []client.Object
		want       string
	}{
		"Ready":                      {time.Hour, corev1.PodRunning, []corev1.PodCondition{podCondition(corev1.PodReady, corev1.ConditionTrue, "", "")}, corev1.ContainerStatus{State: running, LastTerminationState: ended("OOMKilled")}, []client.Object{event("Pod", "ImageNotLoaded", time.Minute)}, "Healthy"},
		"done":                       {time.Hour, corev1.PodSucceeded, []corev1.PodCondition{notReady}, corev1.ContainerStatus{}, nil, "Healthy"},
		"begins":                     {time.Minute, corev1.PodPending, []corev1.PodCondition{}, corev1.ContainerStatus{State: waiting("ContainerCreating")}, []client.Object{event("Pod", "FailedScheduling", time.Minute)}, "OnItsWay"},
		"stands still":               {time.Hour, corev1.PodPending, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: waiting("ContainerCreating")}, nil, "NotKnown"},
		"no room":                    {time.Hour, corev1.PodPending, []corev1.PodCondition{unscheduled("0/3 nodes are available: 3 Insufficient cpu.")}, corev1.ContainerStatus{}, nil, "Cause M-POD-94"},
		"no room yet":                {10 * time.Second, corev1.PodPending, []corev1.PodCondition{unscheduled("0/3 nodes are available: 3 Insufficient memory.")}, corev1.ContainerStatus{}, nil, "OnItsWay"},
		"no volume":                  {time.Hour, corev1.PodPending, []corev1.PodCondition{unscheduled("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.")}, corev1.ContainerStatus{}, nil, "Cause M-POD-85"},
		"a taint, which is not told": {time.Hour, corev1.PodPending, []corev1.PodCondition{unscheduled("0/1 nodes are available: 1 node(s) had untolerated taint")}, corev1.ContainerStatus{}, nil, "NotKnown"},
		"image not loaded":           {time.Hour, corev1.PodPending, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: waiting("ImagePullBackOff")}, []client.Object{event("Pod", "ImageNotLoaded", time.Minute)}, "Cause M-POD-81"},
		"image came":                 {time.Minute, corev1.PodPending, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: running}, []client.Object{event("Pod", "ImageNotLoaded", time.Minute)}, "OnItsWay"},
		"another's Event":            {time.Hour, corev1.PodPending, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: waiting("ImagePullBackOff")}, []client.Object{event("Service", "ImageNotLoaded", time.Minute)}, "NotKnown"},
		"an Event of before":         {3 * time.Hour, corev1.PodPending, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: waiting("ImagePullBackOff")}, []client.Object{event("Pod", "ImageNotLoaded", 2*time.Hour)}, "NotKnown"},
		"keeps ending":               {time.Hour, corev1.PodRunning, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: waiting("CrashLoopBackOff"), LastTerminationState: ended("Error")}, nil, "Cause M-POD-95"},
		"ended for its memory":       {time.Hour, corev1.PodRunning, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: waiting("CrashLoopBackOff"), LastTerminationState: ended("OOMKilled")}, nil, "Cause M-POD-96"},
		"ended for the fourth time":  {time.Hour, corev1.PodRunning, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: ended("Error"), RestartCount: 3}, nil, "Cause M-POD-95"},
		"ended once":                 {time.Hour, corev1.PodRunning, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: ended("Error")}, nil, "NotKnown"},
		"runs again":                 {time.Hour, corev1.PodRunning, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: running, LastTerminationState: ended("OOMKilled")}, nil, "NotKnown"},
		"refers to nothing":          {time.Hour, corev1.PodPending, []corev1.PodCondition{notReady}, corev1.ContainerStatus{State: waiting("CreateContainerConfigError")}, nil, "Cause M-POD-97"},
	} {
		pod := &corev1.Pod{ObjectMeta: meta("web", test.age), Status: corev1.PodStatus{Phase: test.phase, Conditions: test.conditions}}
		test.status.Name = "c"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{test.status}
		f, err := evidence.Pod(t.Context(), cluster(t, "", append(test.events, pod)...), web, noon)
		if got := inWords(t, f); err != nil || got != test.want || f.Name != "shop/web" || f.Names["$NAME"] != "web --namespace shop" {
			t.Errorf("%s: %v, %s, want %s: %q", name, err, got, test.want, said(f.Evidence))
		}
	}
	if _, err := evidence.Pod(t.Context(), cluster(t, ""), web, noon); !apierrors.IsNotFound(err) {
		t.Errorf("of no pod: %v", err)
	}
	pod := &corev1.Pod{ObjectMeta: meta("web", time.Hour)}
	if f, err := evidence.Pod(t.Context(), cluster(t, "events", pod), web, noon); err != nil || len(f.Unseen) != 1 || inWords(t, f) != "NotKnown" {
		t.Errorf("without Events: %v, %+v", err, f)
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		phase  corev1.PersistentVolumeClaimPhase
		events []client.Object
		want   string
	}{
		"bound":         {corev1.ClaimBound, []client.Object{event("PersistentVolumeClaim", "ProvisioningFailed", time.Minute)}, "Healthy"},
		"lost":          {corev1.ClaimLost, nil, "NotKnown"},
		"waits":         {corev1.ClaimPending, []client.Object{event("PersistentVolumeClaim", "WaitForFirstConsumer", time.Minute)}, "Healthy"},
		"fails":         {corev1.ClaimPending, []client.Object{event("PersistentVolumeClaim", "ProvisioningFailed", time.Minute)}, "Cause M-POD-85"},
		"fails at last": {corev1.ClaimPending, []client.Object{event("PersistentVolumeClaim", "WaitForFirstConsumer", 2*time.Minute), event("PersistentVolumeClaim", "ProvisioningFailed", time.Minute)}, "Cause M-POD-85"},
		"no class":      {corev1.ClaimPending, []client.Object{event("PersistentVolumeClaim", "FailedBinding", time.Minute)}, "Cause M-POD-85"},
		"silent":        {corev1.ClaimPending, nil, "NotKnown"},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("web", time.Hour), Status: corev1.PersistentVolumeClaimStatus{Phase: test.phase}}
		f, err := evidence.Claim(t.Context(), cluster(t, "", append(test.events, claim)...), web, noon)
		if got := inWords(t, f); err != nil || got != test.want || f.Kind != "volume" {
			t.Errorf("%s: %v, %s, want %s: %q", name, err, got, test.want, said(f.Evidence))
		}
	}
	if _, err := evidence.Claim(t.Context(), cluster(t, ""), web, noon); !apierrors.IsNotFound(err) {
		t.Errorf("of no claim: %v", err)
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	slice := func(ready *bool) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: meta("web-1", time.Hour), Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: ready}}}}
		s.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
		return s
	}
	for name, test := range map[string]struct {
		kind     corev1.ServiceType
		address  string
		selector string
		slices   []client.Object
		refused  string
		want     string
	}{
		"served":                {corev1.ServiceTypeClusterIP, "", "web", []client.Object{slice(new(true))}, "", "Healthy"},
		"nil is ready":          {corev1.ServiceTypeClusterIP, "", "web", []client.Object{slice(nil)}, "", "Healthy"},
		"none ready":            {corev1.ServiceTypeClusterIP, "", "web", []client.Object{slice(new(false))}, "", "Cause M-POD-80"},
		"no pods":               {corev1.ServiceTypeLoadBalancer, "127.128.0.1", "web", nil, "", "Cause M-POD-80"},
		"of somebody else":      {corev1.ServiceTypeClusterIP, "", "", nil, "", "Healthy"},
		"no address":            {corev1.ServiceTypeLoadBalancer, "", "web", []client.Object{slice(new(true))}, "", "NotKnown"},
		"slices cannot be read": {corev1.ServiceTypeClusterIP, "", "web", nil, "slices", "Healthy"},
	} {
		service := &corev1.Service{ObjectMeta: meta("web", time.Hour), Spec: corev1.ServiceSpec{Type: test.kind}}
		if test.selector != "" {
			service.Spec.Selector = map[string]string{"app": test.selector}
		}
		if test.address != "" {
			service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: test.address}}
		}
		f, err := evidence.Service(t.Context(), cluster(t, test.refused, append(test.slices, service)...), web, noon)
		if got := inWords(t, f); err != nil || got != test.want || (test.refused != "") != (len(f.Unseen) > 0) {
			t.Errorf("%s: %v, %s, want %s: %q, %v", name, err, got, test.want, said(f.Evidence), f.Unseen)
		}
	}
}

// Only names leave the API server.
func TestSecretNames(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{ObjectMeta: meta("database", time.Hour), Data: map[string][]byte{"password": []byte("hunter2")}}
	if names, err := evidence.SecretNames(t.Context(), cluster(t, "", secret)); err != nil || !slices.Equal(names, []string{"shop/database"}) {
		t.Errorf("%v, %v", names, err)
	}
}
