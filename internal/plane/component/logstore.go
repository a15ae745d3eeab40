// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/platform/statedir"
)

// LogStore is the name of the process that keeps the account's logs, and LogStoreProgram that of its program.
const (
	LogStore        = "log-store"
	LogStoreProgram = "victoria-logs"
)

// The bounds of the log store. It removes whole days, and never yesterday's and today's.
const (
	logRetention = "30d"
	logDisk      = "4GiB"
	// logCaches bounds its caches and what queries take; logMemory is what its garbage collector aims at in all.
	logCaches = "100MiB"
	logMemory = "GOMEMLIMIT=160MiB"
	// logGrace is for what it writes to its disk when it ends.
	logGrace = 20 * time.Second
)

// LogStoreSpec is the one process that keeps and searches logs: VictoriaLogs as upstream has it. It listens on a unix
// socket in a directory that is the service's user's alone, which is its only access control: whoever gets to the socket
// may read and write everything.
func LogStoreSpec(a Account) Spec {
	store := statedir.LogStore(a.State)
	return Spec{
		Name: LogStore,
		Path: a.program(LogStoreProgram),
		Args: flags(map[string]string{
			"defaultMsgValue":         "",     // no row lacks its message
			"delete.enable":           "true", // of log groups and streams that are deleted
			"http.connTimeout":        "0s",   // a session is one connection
			"httpListenAddr":          "unix:" + store.Socket(),
			"insert.maxLineSizeBytes": strconv.Itoa(logevent.MaxRow),
			// Muster waits for the disk before it takes lines for kept (package logshipper): one second is the least.
			"inmemoryDataFlushInterval":        "1s",
			"loggerLevel":                      "WARN", // each flush that is asked for would be a line
			"memory.allowedBytes":              logCaches,
			"retention.maxDiskSpaceUsageBytes": logDisk,
			"retentionPeriod":                  logRetention,
			"search.maxQueryLen":               strconv.Itoa(logevent.MaxQuery),
			"storageDataPath":                  store.Data(),
		}),
		Env:         []string{logMemory},
		Directories: []string{a.State.Run(), store.Data()},
		Probe:       &Probe{URL: "http://log-store/health", Socket: store.Socket()},
		Grace:       metav1.Duration{Duration: logGrace},
	}
}
