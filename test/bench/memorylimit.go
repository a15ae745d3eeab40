// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
)

const (
	configMaps      = 1000
	configMapSize   = 1_000_000 // bytes
	configMapWriter = 8         // at a time
	configMapLister = 2         // at a time
)

// benchMemoryLimit measures what a kube-apiserver takes with simulated nodes and 1,000 ConfigMaps of 1 MB:
// v1alpha1.DefaultAPIServerMemoryLimit is twice the most of it.
func benchMemoryLimit(ctx context.Context, bin string, simulated int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	file := filepath.Join(t.dir, "muster.yaml")
	// Far above what it takes.
	text := fmt.Sprintf(`{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: muster}, spec: {apiServer: {memoryLimit: 1024Gi}}}
---
{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: default}, spec: {provider: simulated, scalingConfig: {desiredSize: %d}}}
`, simulated)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if _, err := t.muster(ctx, "up", "-f", file, "--timeout", "20m"); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", t.state().Cluster(clusterconfig.DefaultClusterName).Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "kube-apiserver, MiB\tresident\tanonymous\tmost resident\t")
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{fmt.Sprintf("%d nodes", simulated), func() error { return nil }},
		{fmt.Sprintf("%d ConfigMaps of 1 MB written", configMaps), func() error { return writeConfigMaps(ctx, client) }},
		{"all listed by two at a time", func() error { return listConfigMaps(ctx, client) }},
	} {
		if err := errors.Join(step.do(), pause(ctx, settleTime)); err != nil {
			return err
		}
		now, most, err := t.apiServerMemory()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", step.what, now.resident>>10, now.anonymous>>10, most>>10)
	}
	return w.Flush()
}

func writeConfigMaps(ctx context.Context, client kubernetes.Interface) error {
	text := strings.Repeat("x", configMapSize)
	return together(configMapWriter, func(writer int) error {
		for n := writer; n < configMaps; n += configMapWriter {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bench-" + strconv.Itoa(n)}, Data: map[string]string{"text": text}}
			if _, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("writing ConfigMap %d: %w", n, err)
			}
		}
		return nil
	})
}

func listConfigMaps(ctx context.Context, client kubernetes.Interface) error {
	return together(configMapLister, func(int) error {
		list, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) < configMaps {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
}

// together calls a function by so many at a time.
func together(count int, do func(number int) error) error {
	errs := make([]error, count)
	var group sync.WaitGroup
	for n := range count {
		group.Go(func() { errs[n] = do(n) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// apiServerMemory is what the kube-apiserver of the one cluster holds now, and the most that was resident at a time
// in KiB.
func (t trial) apiServerMemory() (now held, most int, err error) {
	found, err := supervise.Find(t.state())
	if err != nil {
		return held{}, 0, err
	}
	for _, p := range found {
		if cluster, name := component.SplitProcess(p.Name); cluster == "" || name != component.APIServer {
			continue
		}
		if time.Since(p.Started) < settleTime {
			return held{}, 0, errors.New("kube-apiserver was started again")
		}
		if now, err = memoryOf(p.PID); err != nil {
			return held{}, 0, err
		}
		most, err = peakOf(p.PID)
		return now, most, err
	}
	return held{}, 0, errors.New("no kube-apiserver runs")
}

// peakOf is the most of a process that was resident at a time (VmHWM, proc_pid_status(5)), in KiB.
func peakOf(pid int) (int, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")))
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no VmHWM", pid)
}
