// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/strictyaml"
)

// maxSize is far above what five thousand node groups take, and far below what hurts.
const maxSize = 1 << 20

// Read reads a configuration file. Everything that is wrong in it comes back as one error, *Problems.
func Read(path string) (Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("opening the configuration: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	return Parse(path, data)
}

// Parse is Read for text that was read already; name is the file's name in problems.
func Parse(name string, data []byte) (Config, error) {
	return parse(name, data, "", DefaultClusterName)
}

// ParseNamed is Parse for a cluster that somebody called by a name: that of the Cluster in the text, or of the one that
// the text leaves out. An empty name is for text that says it.
func ParseNamed(name string, data []byte, cluster string) (Config, error) {
	return parse(name, data, cluster, "")
}

// parse takes the name that the Cluster must have, if any, and the one of a Cluster that the text leaves out.
func parse(name string, data []byte, must, otherwise string) (Config, error) {
	problems := &Problems{File: name}
	if len(data) > maxSize {
		problems.say(document{}, fmt.Sprintf("is larger than %d bytes, the most that a configuration may have", maxSize))
		return Config{}, problems
	}
	var documents []document
	for i, part := range strictyaml.Split(data) {
		if d, ok := problems.read(i+1, part); ok {
			documents = append(documents, d)
		}
	}
	config := Config{}
	for _, d := range documents {
		if cluster, ok := d.object.(*v1alpha1.Cluster); ok && config.Cluster == nil {
			config.Cluster = cluster
		}
	}
	if config.Cluster == nil {
		if must == "" && otherwise == "" {
			problems.say(document{}, "holds no Cluster that could be read: give the cluster's name, or a document of kind Cluster")
		}
		config.Cluster = newCluster()
		config.Cluster.Spec.Name = cmp.Or(must, otherwise, DefaultClusterName)
		documents = append(documents, document{object: config.Cluster})
	}
	completeCluster(config.Cluster)
	for _, d := range documents {
		switch object := d.object.(type) {
		case *v1alpha1.Cluster:
			completeCluster(object)
			if must != "" && object.Spec.Name != must && object == config.Cluster {
				problems.add(d, field.ErrorList{field.Invalid(field.NewPath("spec", "name"), object.Spec.Name, fmt.Sprintf("must be %q, the name that was given beside the file", must))})
			}
		case *v1alpha1.NodeGroup:
			config.NodeGroups = append(config.NodeGroups, object)
			completeNodeGroup(object, config.Cluster)
			if d.defaultMax {
				if config.DefaultMax == nil {
					config.DefaultMax = map[string]bool{}
				}
				config.DefaultMax[object.Spec.Name] = true
			}
		}
		problems.add(d, validate(d.object))
	}
	problems.cross(documents)
	if err := problems.orNil(); err != nil {
		return Config{}, err
	}
	return config, nil
}

// read decodes one document over its kind's defaults, so that defaults hold for what is left out and for nothing else.
// It reports false if there is nothing that could be checked further.
func (p *Problems) read(number int, part *strictyaml.Document) (document, bool) {
	d := document{number: number, text: part}
	data, wrong := part.JSON()
	if data == nil {
		p.wrong(d, wrong)
		return d, false
	}
	generic := map[string]any{}
	if err := json.Unmarshal(data, &generic); err != nil {
		p.wrong(d, wrong)
		p.say(d, "is not an object with apiVersion, kind, metadata and spec")
		return d, false
	}
	d.kind, _ = generic["kind"].(string)
	d.name, _, _ = unstructured.NestedString(generic, "metadata", "name")
	if name, _, _ := unstructured.NestedString(generic, "spec", "name"); name != "" {
		d.name = name
	}
	p.wrong(d, wrong)
	if version := generic["apiVersion"]; version != v1alpha1.GroupVersion.String() {
		p.add(d, field.ErrorList{unsupported("apiVersion", version, v1alpha1.GroupVersion.String())})
		return d, false
	}
	var object metav1.Object
	switch d.kind {
	case "Cluster":
		object = newCluster()
	case "NodeGroup":
		object = newNodeGroup()
	default:
		p.add(d, field.ErrorList{unsupported("kind", generic["kind"], "Cluster", "NodeGroup")})
		return d, false
	}
	p.add(d, refuse(generic))
	if errs := takeBadDurations(generic); len(errs) > 0 {
		p.add(d, errs)
		var err error
		if data, err = json.Marshal(generic); err != nil {
			p.say(d, err.Error())
			return d, false
		}
	}
	var ok bool
	if d.unread, ok = strictyaml.Decode(data, object); !ok {
		p.wrong(d, d.unread)
		return d, false
	}
	p.wrong(d, d.unread)
	if cluster, ok := object.(*v1alpha1.Cluster); ok {
		cluster.Spec.Certificates = withDurations(cluster.Spec.Certificates)
	}
	if group, ok := object.(*v1alpha1.NodeGroup); ok {
		p.add(d, requireSize(generic))
		size := &group.Spec.ScalingConfig
		if d.defaultMax = !given(generic, "spec", "scalingConfig", "maxSize"); d.defaultMax {
			size.MaxSize = v1alpha1.DefaultMaxSize(group.Spec.Provider, size.MinSize, size.DesiredSize)
		}
	}
	d.object = object
	return d, true
}

// refuse names the fields that belong to the service, not into a file.
func refuse(generic map[string]any) field.ErrorList {
	var errs field.ErrorList
	if _, ok := generic["status"]; ok {
		errs = append(errs, field.Forbidden(field.NewPath("status"), "it is what the service observes; leave it out"))
	}
	metadata, _ := generic["metadata"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		switch key {
		case "name", "namespace", "labels", "annotations":
		default:
			errs = append(errs, field.Forbidden(field.NewPath("metadata", key), "a file may give name, namespace, labels and annotations"))
		}
	}
	return errs
}

// takeBadDurations removes durations that Go cannot read, whose decoder would report them without their path and stop
// there.
func takeBadDurations(generic map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, path := range [][]string{
		{"spec", "certificates", "clientDuration"},
		{"spec", "certificates", "servingDuration"},
		{"spec", "apiServer", "eventTTL"},
		{"spec", "controllerManager", "horizontalPodAutoscalerSyncPeriod"},
	} {
		value, _, err := unstructured.NestedFieldNoCopy(generic, path...)
		if err != nil || value == nil {
			continue
		}
		text, ok := value.(string)
		if _, err := time.ParseDuration(text); !ok || err != nil {
			errs = append(errs, field.Invalid(field.NewPath(path[0], path[1:]...), value, "must be a duration as 168h or 90m"))
			unstructured.RemoveNestedField(generic, path...)
		}
	}
	return errs
}

// requireSize tells a desiredSize of 0 from one that was forgotten.
func requireSize(generic map[string]any) field.ErrorList {
	if given(generic, "spec", "scalingConfig", "desiredSize") {
		return nil
	}
	return field.ErrorList{field.Required(field.NewPath("spec", "scalingConfig", "desiredSize"), "say how many machines the group has")}
}

// given reports whether a document has a field, with a value other than null.
func given(generic map[string]any, path ...string) bool {
	value, found, err := unstructured.NestedFieldNoCopy(generic, path...)
	return err == nil && found && value != nil
}

// withDurations puts the defaults where a document says null, as the API server does.
func withDurations(certificates v1alpha1.ClusterCertificates) v1alpha1.ClusterCertificates {
	defaulted := v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Certificates: certificates}}
	defaulted.Default()
	return defaulted.Spec.Certificates
}

func unsupported(name string, value any, supported ...string) *field.Error {
	if value == nil {
		return field.Required(field.NewPath(name), "one of "+strings.Join(supported, ", "))
	}
	return field.NotSupported(field.NewPath(name), fmt.Sprint(value), supported)
}
