// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	imageBytes    = 100_000_000 // that cannot be compressed
	imageMachines = 3
)

// benchImageLoad measures an image of 100 MB from `muster image load` to a Ready pod of it on each of three machines,
// beside the reading of the archive and its checksum, which is the least that anybody who verifies it does, in turns.
// Each round has an image that no machine has seen.
func benchImageLoad(ctx context.Context, bin string, rounds int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	program := filepath.Join(t.dir, "workload")
	if err := buildWorkload(ctx, program); err != nil {
		return err
	}
	if _, err := t.muster(ctx, "up", "--nodes", fmt.Sprint(imageMachines)); err != nil {
		return err
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	if err := t.settled(ctx, client); err != nil {
		return err
	}
	var sums, loads, runs []time.Duration
	for round := range rounds + 1 { // the first one is not counted
		name := fmt.Sprintf("bench.example/image:%d", round)
		archive := filepath.Join(t.dir, "image.tar")
		if err := writeImage(archive, name, program); err != nil {
			return err
		}
		begun := time.Now()
		if err := checksum(archive); err != nil {
			return err
		}
		sums = append(sums, time.Since(begun))
		begun = time.Now()
		if _, err := t.muster(ctx, "image", "load", archive); err != nil {
			return err
		}
		loads = append(loads, time.Since(begun))
		if err := runOnAll(ctx, client, name, round); err != nil {
			return err
		}
		runs = append(runs, time.Since(begun))
	}
	w := newTable()
	_, _ = fmt.Fprintf(w, "milliseconds, 100 MB, %d machines\tmedian\tn\t\n", imageMachines)
	_, _ = fmt.Fprintf(w, "the archive read and its checksum\t%d\t%d\t\n", quantile(sums[1:], 50).Milliseconds(), rounds)
	_, _ = fmt.Fprintf(w, "muster image load\t%d\t%d\t\n", quantile(loads[1:], 50).Milliseconds(), rounds)
	_, _ = fmt.Fprintf(w, "load, and a Ready pod on each machine\t%d\t%d\t\n", quantile(runs[1:], 50).Milliseconds(), rounds)
	_, _ = fmt.Fprintf(w, "all as multiple of the checksum\t%.1f\t\t\n", ratioOf(runs[1:], sums[1:], 50))
	return w.Flush()
}

func checksum(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	if bytes.Equal(sum[:], make([]byte, len(sum))) {
		return errors.New("a checksum of nothing but zeros")
	}
	return nil
}

// runOnAll starts a pod of the image on each node at the same time, and waits for all.
func runOnAll(ctx context.Context, client kubernetes.Interface, image string, round int) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(nodes.Items) != imageMachines {
		return fmt.Errorf("the cluster has %d nodes", len(nodes.Items))
	}
	ended := make(chan error)
	for n, node := range nodes.Items {
		pod := benchPod(fmt.Sprintf("bench-%d-%d", round, n), node.Name)
		pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Args = image, nil
		go func() {
			_, err := startPod(ctx, client, pod)
			ended <- err
		}()
	}
	for range nodes.Items {
		err = errors.Join(err, <-ended)
	}
	return err
}

func buildWorkload(ctx context.Context, path string) error {
	build := exec.CommandContext(ctx, "go", "-C", "images", "build", "-o", path, "./workload")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the workload: %w\n%s", err, out)
	}
	return nil
}

// writeImage writes what `docker save` writes of an image that has the program and 100 MB of noise.
func writeImage(path, name, program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	noise := make([]byte, imageBytes)
	if _, err := rand.Read(noise); err != nil {
		return err
	}
	layer, err := pack(entry{"workload", 0o755, content}, entry{"noise", 0o644, noise})
	if err != nil {
		return err
	}
	config := fmt.Appendf(nil, `{"architecture":%q,"os":"linux","config":{"Entrypoint":["/workload","serve"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}`,
		runtime.GOARCH, hexSum(layer))
	manifest := fmt.Appendf(nil, `[{"Config":"%s.json","RepoTags":[%q],"Layers":["%s/layer.tar"]}]`, hexSum(config), name, hexSum(layer))
	archive, err := pack(entry{hexSum(layer) + "/layer.tar", 0o644, layer}, entry{hexSum(config) + ".json", 0o644, config}, entry{"manifest.json", 0o644, manifest})
	if err != nil {
		return err
	}
	return os.WriteFile(path, archive, 0o600)
}

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// entry is a file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

func pack(entries ...entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}
