// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod is asked for once in a while, and a pod that was not found is asked for again soon.
func TestKnownPods(t *testing.T) {
	t.Parallel()
	now, asked := time.Unix(0, 0), 0
	down := errors.New("down")
	k := &knownPods{now: func() time.Time { return now }, find: func(namespace, name string) (*corev1.Pod, error) {
		asked++
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid", Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: "node", InitContainers: []corev1.Container{{Name: "init", Image: "i"}}, Containers: []corev1.Container{{Name: "app", Image: "a"}}},
		}, down
	}}
	for _, step := range []struct {
		after time.Duration
		down  error
		found bool
		asked int
	}{
		{0, errors.New("down"), false, 1}, {podRetry - 1, nil, false, 1}, {1, nil, true, 2}, {podTime - 1, nil, true, 2}, {1, errors.New("down"), false, 3},
	} {
		now, down = now.Add(step.after), step.down
		pod, found := k.get("shop", "web-0")
		if found != step.found || asked != step.asked {
			t.Errorf("at %v: found %v, asked %d times", now, found, asked)
		}
		if found && (pod.UID != "uid" || pod.Node != "node" || pod.Labels["app"] != "web" || pod.Images["init"] != "i" || pod.Images["app"] != "a") {
			t.Errorf("%+v", pod)
		}
	}
}
