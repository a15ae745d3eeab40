// SPDX-License-Identifier: Apache-2.0

// Kubernetes is every upstream Kubernetes program that runs for long, and kubeadm, in one binary, chosen by the name it
// is called by (argv[0]), as a link to it. etcd is a module of its own, which is upgraded at its own time. People's
// kubectl is a program of its own: it starts in a fifth of the time and can be copied. Upstream's flags, feature gates
// and klog are global to a process, so one call builds one program only. Nothing of upstream is changed, and nothing of
// Muster is imported. One program is not upstream's, though all that it does is: kubelet-config-check has the kubelet's
// configuration validated by the kubelet's own packages.
//
// These sources are built with each minor of Kubernetes, by -modfile=MINOR/go.mod: a minor is a folder with a go.mod and
// a go.sum, and its programs go into bin/MINOR. The go.mod beside these sources is a link to that of the default minor,
// so that every tool of Go, and an editor, find a module here.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones; hosts without a zone database must know them too

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // rest_client_* metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	"k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	generic "k8s.io/kubernetes/pkg/controlplane/apiserver/samples/generic/server"
)

// programs maps the name of a link to what runs under it. A program does not return unless it succeeded.
var programs = map[string]func(){
	"generic-apiserver":       component(generic.NewCommand),
	"kube-apiserver":          component(apiserver.NewAPIServerCommand),
	"kube-controller-manager": component(controllermanager.NewControllerManagerCommand),
	"kube-proxy":              component(proxy.NewProxyCommand),
	"kube-scheduler":          component(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubeadm":                 func() { kubeadmerrors.HandleError(kubeadm.Run()) },
	"kubelet":                 component(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kubelet-config-check":    checkKubeletConfig,
}

func main() {
	name := filepath.Base(os.Args[0])
	run, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s (Kubernetes %s) runs the program whose name it is called by; make a link named one of: %s\n",
			name, version.Get().GitVersion, strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
		os.Exit(2)
	}
	run()
}

func component(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}
