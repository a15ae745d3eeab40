// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	conversion "k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"
)

// checked is what kubelet-config-check reads from its standard input, as JSON.
type checked struct {
	// Config and DropIns are KubeletConfigurations, as the kubelet finds them in its files.
	Config  json.RawMessage   `json:"config"`
	DropIns []json.RawMessage `json:"dropIns"`
	// Args are the kubelet's arguments. Arguments that name files are not looked at.
	Args []string `json:"args"`
	// Resources of the machine: processors, bytes of memory and of the disk that pods are on. 0 is not known.
	CPUs        int64 `json:"cpus"`
	MemoryBytes int64 `json:"memoryBytes"`
	DiskBytes   int64 `json:"diskBytes"`
}

// largestInput bounds standard input in bytes.
const largestInput = 4 << 20

// checkKubeletConfig is the program kubelet-config-check: it prints each problem for which a kubelet would refuse to
// start, a line each, by the kubelet's own validation, and starts nothing. It exits with 0 if there is no problem, 1 if
// there are problems, 2 if it cannot tell.
func checkKubeletConfig() {
	raw, err := io.ReadAll(io.LimitReader(os.Stdin, largestInput))
	var input checked
	if err == nil {
		err = json.Unmarshal(raw, &input)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: reading what is to be checked from standard input: %v\n", err)
		os.Exit(2)
	}
	problems := input.problems(context.Background())
	for _, problem := range problems {
		fmt.Println(strings.Join(strings.Fields(problem), " "))
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// problems takes the steps of NewKubeletCommand and run in k8s.io/kubernetes/cmd/kubelet/app/server.go as far as they
// refuse anything without looking at the machine. Some of upstream's panic at what they do not know.
func (c checked) problems(ctx context.Context) (found []string) {
	defer func() {
		if failure := recover(); failure != nil {
			found = append(found, fmt.Sprintf("the kubelet would panic: %v", failure))
		}
	}()
	config, err := c.load(ctx)
	if err != nil {
		return lines(err)
	}
	gate := utilfeature.DefaultMutableFeatureGate
	if err := gate.SetFromMap(config.FeatureGates); err != nil {
		return lines(err) // the other checks depend on the feature gates
	}
	found = append(found, lines(logsapi.Validate(&config.Logging, gate, field.NewPath("logging")).ToAggregate())...)
	found = append(found, lines(validation.ValidateKubeletConfiguration(config, gate))...)
	return append(found, c.reservations(config)...)
}

// load is the configuration that the kubelet would run with: its file, drop-ins over that, and flags over those.
func (c checked) load(ctx context.Context) (*kubeletconfig.KubeletConfiguration, error) {
	flags, err := options.NewKubeletConfiguration()
	if err != nil {
		return nil, err
	}
	kubeletFlags := options.NewKubeletFlags()
	set := newFlagSet()
	kubeletFlags.AddFlags(set)
	options.AddKubeletConfigFlags(set, flags)
	options.AddGlobalFlags(set)
	if err := set.Parse(c.Args); err != nil {
		return nil, err
	}
	if rest := set.Args(); len(rest) > 0 {
		return nil, fmt.Errorf("unknown command %s", rest[0])
	}
	if err := options.ValidateKubeletFlags(kubeletFlags); err != nil {
		return nil, err
	}
	config := flags
	if len(c.Config) > 0 {
		_, codecs, err := scheme.NewSchemeAndCodecs()
		if err != nil {
			return nil, err
		}
		if config, err = codec.DecodeKubeletConfiguration(ctx, codecs, c.Config); err != nil {
			return nil, err
		}
	}
	if err := c.merge(config); err != nil {
		return nil, err
	}
	return config, c.override(config)
}

func newFlagSet() *pflag.FlagSet {
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	set.SetOutput(io.Discard)
	return set
}

// merge lays the drop-ins over the configuration (mergeKubeletConfigurations).
func (c checked) merge(config *kubeletconfig.KubeletConfiguration) error {
	if len(c.DropIns) == 0 {
		return nil
	}
	versioned := &v1beta1.KubeletConfiguration{}
	if err := conversion.Convert_config_KubeletConfiguration_To_v1beta1_KubeletConfiguration(config, versioned, nil); err != nil {
		return err
	}
	merged, err := json.Marshal(versioned)
	if err != nil {
		return err
	}
	for _, dropIn := range c.DropIns {
		if merged, err = jsonpatch.MergePatch(merged, dropIn); err != nil {
			return fmt.Errorf("merging a drop-in: %w", err)
		}
	}
	versioned = &v1beta1.KubeletConfiguration{}
	if err := json.Unmarshal(merged, versioned); err != nil {
		return fmt.Errorf("reading the merged configuration: %w", err)
	}
	conversion.SetDefaults_KubeletConfiguration(versioned)
	return conversion.Convert_v1beta1_KubeletConfiguration_To_config_KubeletConfiguration(versioned, config, nil)
}

// override lays the flags over the configuration once more, as they win (kubeletConfigFlagPrecedence).
func (c checked) override(config *kubeletconfig.KubeletConfiguration) error {
	set, globals := newFlagSet(), newFlagSet()
	options.AddGlobalFlags(globals)
	globals.VisitAll(func(f *pflag.Flag) { set.VarP(cliflag.NoOp{}, f.Name, f.Shorthand, f.Usage) })
	options.NewKubeletFlags().AddFlags(set)
	options.AddKubeletConfigFlags(set, config)
	gates := config.FeatureGates
	if err := set.Parse(c.Args); err != nil {
		return err
	}
	for name, enabled := range gates {
		if config.FeatureGates == nil {
			config.FeatureGates = map[string]bool{}
		}
		if _, there := config.FeatureGates[name]; !there {
			config.FeatureGates[name] = enabled
		}
	}
	return nil
}

// lines are the errors that one error holds.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	var all []string
	if many, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		for _, one := range many.Errors() {
			all = append(all, lines(one)...)
		}
		return all
	}
	return []string{err.Error()}
}
