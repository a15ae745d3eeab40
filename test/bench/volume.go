// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const volumePods = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: directory}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: device}
spec: {volumeMode: Block, accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: bench}
spec:
  containers:
  - name: c
    image: muster.dev/workload:v1
    args: [serve]
    securityContext: {runAsUser: 0}
    volumeMounts: [{name: directory, mountPath: /data}]
    volumeDevices: [{name: device, devicePath: /dev/raw}]
  volumes:
  - {name: directory, persistentVolumeClaim: {claimName: directory}}
  - {name: device, persistentVolumeClaim: {claimName: device}}
`

// benchVolume measures writes that wait for the disk, by one program: in a directory of the host beside the volumes, in
// a pod's volume, and on a pod's raw block volume, in turns.
func benchVolume(ctx context.Context, bin string, rounds int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	program := filepath.Join(t.dir, "workload")
	if err := buildWorkload(ctx, program); err != nil {
		return err
	}
	if _, err := t.muster(ctx, "up", "--nodes", "1"); err != nil {
		return err
	}
	manifest := filepath.Join(t.dir, "volumes.yaml")
	if err := os.WriteFile(manifest, []byte(volumePods), 0o600); err != nil {
		return err
	}
	if _, err := t.mustKubectl(ctx, "apply", "-f", manifest); err != nil {
		return err
	}
	if _, err := t.mustKubectl(ctx, "wait", "--for=condition=Ready", "pod/bench", "--timeout=60s"); err != nil {
		return err
	}
	beside := filepath.Join(t.state().FileSystems(), "bench") // on the same disk
	defer func() { _ = os.Remove(beside) }()
	type place struct {
		name        string
		command     func() *exec.Cmd
		median, p99 []float64
	}
	places := []*place{
		{name: "host", command: func() *exec.Cmd { return exec.CommandContext(ctx, program, "fsync", beside) }},
		{name: "volume", command: func() *exec.Cmd { return t.execIn(ctx, "fsync", "/data/file") }},
		{name: "raw block volume", command: func() *exec.Cmd { return t.execIn(ctx, "fsync", "/dev/raw") }},
	}
	for range rounds + 1 { // the first round makes the files' blocks, and does not count
		for _, p := range places {
			out, err := p.command().Output()
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			var median, p99 float64
			if _, err := fmt.Fscan(bytes.NewReader(out), &median, &p99); err != nil {
				return fmt.Errorf("%s: %q: %w", p.name, out, err)
			}
			p.median, p.p99 = append(p.median, median), append(p.p99, p99)
		}
	}
	table := newTable()
	fmt.Fprintln(table, "write and fsync, 4 KiB\tmedian µs\tp99 µs\trate beside the host's\t")
	host := middle(places[0].median[1:])
	for _, p := range places {
		median := middle(p.median[1:])
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f %%\t\n", p.name, median, middle(p.p99[1:]), 100*host/median)
	}
	return table.Flush()
}

// execIn runs the workload in the pod.
func (t trial) execIn(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(t.bin, "kubectl"), append([]string{"exec", "bench", "--", "/workload"}, args...)...)
	cmd.Env = t.environ()
	return cmd
}
