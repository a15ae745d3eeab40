// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// startedPods start one after the other: their p99 is the longest but one. Two machines hold them all, and one
	// without a token for every fifth.
	startedPods = 100
	// bareContainers are started without Kubernetes.
	bareContainers = 20
	benchImage     = "muster.dev/workload:v1"
)

// benchPods measures pods from the call that creates one until a watcher sees it Ready, on two machines that have its
// image; in turns with them pods without a service account token, for whose volume the kubelet waits by looking every
// 300 ms (pkg/kubelet/volumemanager); and containers of the same image that a machine's containerd is told to run,
// which is the part of it that Kubernetes has no influence on.
func benchPods(ctx context.Context, bin string) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "2"); err != nil {
		return err
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	if err := t.settled(ctx, client); err != nil {
		return err
	}
	var pods, without []time.Duration
	for n := range startedPods + 1 { // the first ones are not counted
		took, err := startPod(ctx, client, benchPod(fmt.Sprint("bench-", n), ""))
		if err != nil {
			return err
		}
		pods = append(pods, took)
		if n%5 != 0 {
			continue
		}
		pod := benchPod(fmt.Sprint("no-token-", n), "")
		pod.Spec.AutomountServiceAccountToken = new(false)
		if took, err = startPod(ctx, client, pod); err != nil {
			return err
		}
		without = append(without, took)
	}
	machines, err := t.machines(ctx)
	if err != nil {
		return err
	}
	var bare []time.Duration
	for n := range bareContainers + 1 {
		took, err := t.runBare(ctx, machines[0].Name, fmt.Sprint("bench-", n))
		if err != nil {
			return err
		}
		bare = append(bare, took)
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "milliseconds\tp50\tp99\tn\t")
	for _, row := range []struct {
		name string
		all  []time.Duration
	}{{"pod, created to Ready", pods[1:]}, {"pod without a token", without[1:]}, {"container alone, by ctr", bare[1:]}} {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", row.name, quantile(row.all, 50).Milliseconds(), quantile(row.all, 99).Milliseconds(), len(row.all))
	}
	_, _ = fmt.Fprintf(w, "pod as multiple of container\t%.1f\t%.1f\t\t\n", ratioOf(pods[1:], bare[1:], 50), ratioOf(pods[1:], bare[1:], 99))
	return w.Flush()
}

// quantile is the duration that so many of a hundred do not exceed.
func quantile(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

func ratioOf(a, b []time.Duration, percent int) float64 {
	return float64(quantile(a, percent)) / float64(quantile(b, percent))
}

func (t trial) client() (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(t.dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	return kubernetes.NewForConfig(config)
}

// settled waits for the pods that every cluster has, so that they do not start during the measurement.
func (t trial) settled(ctx context.Context, client kubernetes.Interface) error {
	for deadline := time.Now().Add(2 * time.Minute); ; {
		pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) > 0 && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return !isReady(&p) }) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the cluster's own pods are not Ready after two minutes")
		}
		time.Sleep(250 * time.Millisecond)
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// benchPod is a pod of the image that every machine has, on a node or where the scheduler puts it.
func benchPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "c", Image: benchImage, Args: []string{"serve"}, ImagePullPolicy: corev1.PullNever,
		}}},
	}
}

// startPod returns how long it is from the call to Ready.
func startPod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	of := client.CoreV1().Pods(pod.Namespace)
	events, err := of.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String()})
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	begun := time.Now()
	if _, err := of.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	for event := range events.ResultChan() {
		if seen, ok := event.Object.(*corev1.Pod); ok && isReady(seen) {
			return time.Since(begun), nil
		}
	}
	return 0, fmt.Errorf("pod %s is not Ready after a minute", pod.Name)
}

// runBare has a machine's containerd run the image in the background, and returns how long the command took.
func (t trial) runBare(ctx context.Context, machine, name string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(t.bin, "muster"), "exec", machine, "--",
		"ctr", "-n", "k8s.io", "run", "--detach", benchImage, name, "/workload", "serve")
	cmd.Env = t.environ()
	begun := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("ctr run: %w\n%s", err, out)
	}
	return time.Since(begun), nil
}
