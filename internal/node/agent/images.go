// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/platform/atomicfile"
)

// shippedInterval is how often the directory of the images is looked at that are shipped with muster.
const shippedInterval = time.Second

// firstImages are the archives that are imported before the kubelet starts: a pod that came before its image would wait for ten
// seconds to try again. Images of add-ons that a cluster may have are imported while the kubelet starts, and are there before its
// node is Ready.
var firstImages = []string{"pause", "workload", "coredns"}

// shippedImages brings the images that are shipped with muster into containerd, which has no registry to pull them
// from.
type shippedImages struct {
	agent *agent
	dir   string
	seen  time.Time // when the directory had changed last whose archives all were imported
}

// first imports the first images. A failure is not waited for; follow tries again.
func (s *shippedImages) first(ctx context.Context) {
	for _, name := range firstImages {
		archive := filepath.Join(s.dir, name+".tar")
		if err := s.agent.importImage(ctx, archive); err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			s.agent.log.Error("cannot import image, trying again", "archive", archive, "error", err)
		}
	}
}

// others returns what imports the other images, and goes on in the background with those that fail or come later. It does so once: a
// machine of a warm pool may wait there for days.
func (s *shippedImages) others(ctx context.Context) func() {
	return sync.OnceFunc(func() {
		s.sync(ctx)
		go s.follow(ctx)
	})
}

func (a *agent) newShippedImages() *shippedImages {
	return &shippedImages{agent: a, dir: filepath.Join(a.config.BinDir, "images")}
}

// follow imports archives that failed, and those that come later: a cluster may be up while the images of add-ons are still being built. A
// failed import is tried again.
func (s *shippedImages) follow(ctx context.Context) {
	pause := firstPause
	for sleep(ctx, shippedInterval) {
		if info, err := os.Stat(s.dir); err != nil || info.ModTime().Equal(s.seen) {
			continue
		}
		if s.sync(ctx) {
			pause = firstPause
			continue
		}
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// sync imports what has not been imported, and reports whether all is there. The image of sandboxes comes first, since
// no pod starts without it; then the small ones. An image is never removed to make room (its label says so), since it
// could not be pulled again.
func (s *shippedImages) sync(ctx context.Context) bool {
	before, err := os.Stat(s.dir) // an archive that comes while others are imported changes the directory again
	if err != nil {
		s.agent.log.Error("cannot look at images", "error", err)
		return false
	}
	archives, err := filepath.Glob(filepath.Join(s.dir, "*.tar"))
	if err != nil {
		s.agent.log.Error("cannot list images", "error", err)
		return false
	}
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	slices.SortFunc(archives, func(a, b string) int { return int(size(a) - size(b)) })
	all := true
	for _, archive := range archives {
		if err := s.agent.importImage(ctx, archive); err != nil && ctx.Err() == nil {
			s.agent.log.Error("cannot import image, trying again", "archive", archive, "error", err)
			all = false
		}
	}
	if all && ctx.Err() == nil {
		s.seen = before.ModTime()
	}
	return all
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
	// An image is unpacked when its first container is made (containerd, internal/cri/opts, WithNewSnapshot): most
	// machines never run most images, and unpacking costs more than all the rest. ctr reads the archive itself: handing it to containerd's
	// transfer service in small pieces takes both twice the time.
	if err := a.run(ctx, "ctr", "--namespace=k8s.io", "images", "import", "--local", "--no-unpack", "--label=io.cri-containerd.pinned=pinned", archive); err != nil {
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
