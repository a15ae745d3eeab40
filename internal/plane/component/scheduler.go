// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"
)

// scheduler is upstream's, with its defaults and what users choose.
func scheduler(c Config) (Spec, error) {
	credential := c.Credential("kube-scheduler")
	path := c.file(Scheduler, "kubeconfig")
	config, err := kubeconfig(path, c.Places.Published.URL(), c.Authority("cluster"), credential)
	if err != nil {
		return Spec{}, err
	}
	args := map[string]string{
		"authentication-kubeconfig":    path,
		"authorization-kubeconfig":     path,
		"bind-address":                 c.Places.Scheduler.Listen.Addr().String(),
		"client-ca-file":               c.Authority("cluster"),
		"kubeconfig":                   path,
		"leader-elect":                 "false",
		"profiling":                    "false",
		"requestheader-client-ca-file": c.Authority("front-proxy"),
		"secure-port":                  fmt.Sprint(c.Places.Scheduler.Listen.Port()),
		"tls-cert-file":                credential,
		"tls-min-version":              "VersionTLS12",
		"tls-private-key-file":         credential,
	}
	files, settings := []File{config}, c.Cluster.Spec.Scheduler
	maps.Copy(args, verbosity(settings.LogLevel))
	if settings.ScoringStrategy != nil {
		args["config"] = c.file(Scheduler, "configuration.yaml")
		delete(args, "kubeconfig")
		delete(args, "profiling")
		files = append(files, File{Path: args["config"], Mode: modePrivate, Content: schedulerConfiguration(*settings.ScoringStrategy, path)})
	}
	return Spec{
		Name:        Scheduler,
		Path:        c.kubernetes("kube-scheduler"),
		Args:        c.kubernetesFlags("kube-scheduler", args),
		NextArgs:    printFlags(settings.LogLevel),
		Files:       files,
		Address:     c.Places.Scheduler.Listen.String(),
		Credentials: sorted(credential),
		View:        &View{Reads: []string{credential}, Public: sorted(c.Authority("cluster"), c.Authority("front-proxy"))},
		Probe:       &Probe{URL: c.Places.Scheduler.URL() + "/healthz", CAFile: c.Authority("cluster")},
		After:       []string{Front, APIServer},
	}, nil
}
