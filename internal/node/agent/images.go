// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/platform/atomicfile"
)

// importImages brings the images that are shipped with muster into containerd, which has no registry to pull them from.
// The image of sandboxes comes first, since no pod starts without it; then the small ones. None is ever removed to make
// room (its label says so), since it could not be pulled again.
//
// The kubelet starts when this returns: a pod that came before its image would wait for ten seconds to try again. A failure is not waited
// for; it is tried again in the background.
func (a *agent) importImages(ctx context.Context) {
	archives, err := filepath.Glob(filepath.Join(a.config.BinDir, "images", "*.tar"))
	if err != nil {
		a.log.Error("cannot list images", "error", err)
		return
	}
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	slices.SortFunc(archives, func(a, b string) int { return int(size(a) - size(b)) })
	for _, archive := range archives {
		if err := a.importImage(ctx, archive); err != nil && ctx.Err() == nil {
			a.log.Error("cannot import image, trying again", "archive", archive, "error", err)
			go a.retryImport(ctx, archive)
		}
	}
}

func (a *agent) retryImport(ctx context.Context, archive string) {
	for pause := firstPause; sleep(ctx, pause); pause = min(2*pause, lastPause) {
		err := a.importImage(ctx, archive)
		if err == nil {
			return
		}
		a.log.Error("cannot import image, trying again", "archive", archive, "error", err)
	}
}

// importImage imports one archive, unless it has been imported by an earlier boot from this very file.
func (a *agent) importImage(ctx context.Context, archive string) error {
	info, err := os.Stat(archive)
	if err != nil {
		return fmt.Errorf("importing image %s: %w", filepath.Base(archive), err)
	}
	imported := filepath.Join(a.config.DataDir, "imported-"+strings.TrimSuffix(filepath.Base(archive), ".tar"))
	version := fmt.Sprintf("%d bytes of %s\n", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
	if before, err := os.ReadFile(imported); err == nil && string(before) == version {
		return nil
	}
	started := time.Now()
	// An image is unpacked when its first container is made (containerd, internal/cri/opts, WithNewSnapshot): most machines never
	// run most images, and unpacking costs more than all the rest.
	if err := a.run(ctx, "ctr", "--namespace=k8s.io", "images", "import", "--no-unpack", "--label=io.cri-containerd.pinned=pinned", archive); err != nil {
		return fmt.Errorf("importing image %s: %w", filepath.Base(archive), err)
	}
	a.log.Info("image imported", "archive", filepath.Base(archive), "took", time.Since(started))
	return atomicfile.Write(imported, []byte(version), 0o600)
}

// sleep waits, and reports whether it did so to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
