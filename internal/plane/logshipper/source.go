// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/logevent"
)

// Source is a log of a control plane.
type Source struct {
	// Path of the file that its process writes.
	Path string
	// Copied says that it is rotated by copying it to PATH.1 and emptying it (package supervise); else it is renamed to
	// NAME-TIME.log, as the API server does with its audit log.
	Copied bool
	// Log and Stream are the log group, as Insights' @log has it, and the log stream.
	Log, Stream string
	// Zone is that of times without one.
	Zone *time.Location
	// On says that the log is to be kept.
	On bool
}

// OfCluster lists the logs of a cluster's control plane: of each type, the kept types and the others.
func OfCluster(c component.Config) []Source {
	var sources []Source
	add := func(kind v1alpha1.LoggingType, prefix, name, path string, audit bool) {
		zone := time.Local
		if audit {
			zone = time.UTC
		}
		sources = append(sources, Source{
			Path: path, Copied: !audit, Log: component.DefaultAccount + ":" + logevent.LogGroup(c.Cluster.Spec.Name), Stream: prefix + "-" + instance(c, name), Zone: zone,
			On: slices.Contains(c.Cluster.Spec.EKS.LoggingTypes, kind),
		})
	}
	for slot := range component.APIServers {
		name := component.APIServerName(slot)
		add("api", "kube-apiserver", name, c.Dir.Log(name), false)
		add("audit", "kube-apiserver-audit", name, c.Dir.Audit(slot), true)
	}
	add("authenticator", "authenticator", component.Authenticator, c.Dir.Log(component.Authenticator), false)
	add("controllerManager", "kube-controller-manager", component.ControllerManager, c.Dir.Log(component.ControllerManager), false)
	add("scheduler", "kube-scheduler", component.Scheduler, c.Dir.Log(component.Scheduler), false)
	return sources
}

// instance is 32 hexadecimal digits, which EKS's log streams end with, one for each process of a cluster.
func instance(c component.Config, name string) string {
	sum := sha256.Sum256([]byte(c.Dir.Namespace() + "/" + name))
	return hex.EncodeToString(sum[:16])
}
