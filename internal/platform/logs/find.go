// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/statedir"
)

// The names under which the audit log is found among the components, and those of its lines that matter for security.
const (
	AuditName    = "audit"
	SecurityName = "security"
)

// Components finds the logs of the account's components, sorted by name.
func Components(dir statedir.Dir) []Source { return inDirectory(dir.Logs()) }

// ClusterComponents finds the logs of the components of one cluster, its audit log included, sorted by name.
func ClusterComponents(cluster statedir.Cluster) []Source {
	sources := inDirectory(cluster.Logs())
	for name, pattern := range map[string]string{AuditName: cluster.Audits(), SecurityName: cluster.SecurityLogs()} {
		paths, _ := filepath.Glob(pattern) // of all instances of the API server
		for _, path := range paths {
			// The API server rotates its log to audit-<time>.log, which sort in that order
			// (gopkg.in/natefinch/lumberjack), and package auditlog its own to security-<number>.log.
			older, _ := filepath.Glob(strings.TrimSuffix(path, ".log") + "-*.log")
			slices.Sort(older)
			// The API server, which may be taken over, must not make us read the host's files.
			sources = append(sources, Source{Name: name, Path: path, Older: older, Root: filepath.Dir(path), Location: time.UTC})
		}
	}
	slices.SortFunc(sources, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	return sources
}

func inDirectory(dir string) []Source {
	var sources []Source
	entries, _ := os.ReadDir(dir) // sorted; without a directory there is nothing in it
	for _, entry := range entries {
		if s, ok := source(dir, entry, time.Local); ok {
			sources = append(sources, s)
		}
	}
	return sources
}

// Machine finds the logs of a machine, sorted by name. Its programs write the time in the machine's zone, which is UTC
// unless its /etc/localtime says otherwise.
func Machine(dir statedir.Dir, id string) []Source {
	// A pod that broke out of its container may do what it likes on the machine's disk. It must not make us read the
	// host's files.
	path := filepath.Join(dir.Machine(id), "root")
	name, err := filepath.Rel(path, dir.MachineLogs(id))
	if err != nil {
		return nil
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	zone := zoneOf(root)
	entries, err := fs.ReadDir(root.FS(), name)
	if err != nil {
		return nil
	}
	var sources []Source
	for _, entry := range entries {
		if s, ok := source(dir.MachineLogs(id), entry, zone); ok {
			s.Root = path
			sources = append(sources, s)
		}
	}
	return sources
}

// largestZone is more than any file of the time zone database has.
const largestZone = 64 << 10

// zoneOf is a machine's time zone; UTC if it has none that can be read. A path that is not a file, but a pipe, must not
// hold the reader, nor what is larger than any such file.
func zoneOf(root *os.Root) *time.Location {
	file, err := root.OpenFile("etc/localtime", os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return time.UTC
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > largestZone {
		return time.UTC
	}
	raw, err := io.ReadAll(io.LimitReader(file, largestZone))
	if err != nil {
		return time.UTC
	}
	zone, err := time.LoadLocationFromTZData("machine", raw)
	if err != nil {
		return time.UTC
	}
	return zone
}

// source is the log that a file of a directory is.
func source(dir string, entry fs.DirEntry, zone *time.Location) (Source, bool) {
	name, ok := strings.CutSuffix(entry.Name(), ".log")
	if !ok || !entry.Type().IsRegular() {
		return Source{}, false
	}
	path := filepath.Join(dir, entry.Name())
	return Source{Name: name, Path: path, Older: []string{path + ".1"}, Location: zone}, true
}

// Size of a log with its older parts, and when it was last written.
func (s Source) Size() (bytes int64, written time.Time) {
	for _, path := range append(slices.Clone(s.Older), s.Path) {
		if info, err := s.stat(path); err == nil {
			bytes, written = bytes+info.Size(), info.ModTime()
		}
	}
	return bytes, written
}
