// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"muster.dev/muster/internal/node/imageimport"
	"muster.dev/muster/internal/node/loadedimages"
	"muster.dev/muster/internal/node/render"
)

const (
	// contentDir is where containerd keeps blobs.
	contentDir = imageDir + "/io.containerd.content.v1.content/blobs"
	// loadedInterval is how often the index of images is looked at. It costs a system call; a watch would cost one of
	// the host's few inotify instances on every machine.
	loadedInterval = 100 * time.Millisecond
	// loadedPatience bounds one attempt.
	loadedPatience = 2 * time.Minute
)

// loadedImages makes containerd's images those that were loaded for this machine's cluster.
type loadedImages struct {
	agent   *agent
	dir     string
	seen    fs.FileInfo // of the index that was taken over, nil if there was none or it failed
	version string
	said    string
}

func (a *agent) newLoadedImages() *loadedImages {
	return &loadedImages{agent: a, dir: loadedimages.Dir}
}

// imagesReport is the file in which the host is told how far the machine is.
func (a *agent) imagesReport() string { return filepath.Join("/", loadedimages.ReportPath) }

// follow takes over each new index until the context ends. If that fails, it is tried again.
func (l *loadedImages) follow(ctx context.Context) {
	pause := firstPause
	for sleep(ctx, loadedInterval) {
		if !l.changed() {
			continue
		}
		if l.sync(ctx) {
			pause = firstPause
			continue
		}
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// changed reports whether the index is another file than the one that was taken over.
func (l *loadedImages) changed() bool {
	now, err := os.Stat(filepath.Join(l.dir, loadedimages.IndexFile))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) || l.version == ""
	}
	return l.seen == nil || !os.SameFile(now, l.seen) || !now.ModTime().Equal(l.seen.ModTime())
}

// sync takes the index over, and reports whether it did.
func (l *loadedImages) sync(ctx context.Context) bool {
	seen, err := os.Stat(filepath.Join(l.dir, loadedimages.IndexFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l.failed(err)
	}
	index, version, err := loadedimages.Read(l.dir)
	if err != nil {
		return l.failed(err)
	}
	started := time.Now()
	if err := l.take(ctx, index); err != nil {
		return l.failed(err)
	}
	if l.said != "" || l.version != version && len(index.Images) > 0 {
		l.agent.log.Info("loaded images taken over", "images", len(index.Images), "took", time.Since(started))
	}
	l.seen, l.version, l.said = seen, version, ""
	if err := (loadedimages.Report{Version: version}).Write(l.agent.imagesReport()); err != nil {
		l.agent.log.Warn("the host cannot be told that images were taken over", "error", err)
	}
	return true
}

func (l *loadedImages) failed(err error) bool {
	l.seen = nil
	if err.Error() != l.said {
		l.said = err.Error()
		l.agent.log.Error("cannot take over loaded images, trying again", "error", err)
	}
	if err := (loadedimages.Report{Version: l.version, Failure: err.Error()}).Write(l.agent.imagesReport()); err != nil {
		l.agent.log.Warn("the host cannot be told that images were not taken over", "error", err)
	}
	return false
}

// take makes containerd's images those of an index.
func (l *loadedImages) take(ctx context.Context, index loadedimages.Index) error {
	ctx, cancel := context.WithTimeout(ctx, loadedPatience)
	defer cancel()
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", render.ContainerdSocket)
	}
	connection, err := grpc.NewClient("passthrough:///containerd", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer))
	if err != nil {
		return fmt.Errorf("reaching containerd: %w", err)
	}
	defer func() { _ = connection.Close() }()
	importer, err := imageimport.New(imageimport.Config{Connection: connection, Dir: l.dir, Content: contentDir})
	if err != nil {
		return err
	}
	return importer.Sync(ctx, index)
}
