// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"regexp"
	"strings"
	"time"
)

// containerTag is the tag of a container's log below its prefix.
var containerTag = regexp.MustCompile(`^([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)_([^_]+)_(.+)-([a-z0-9]{64})\.log$`)

// kubernetes adds what is known of a record's pod.
type kubernetes struct {
	prefix                     string
	merge, trim, keep          bool
	mergeKey                   string
	labels, annotations        bool
	parserByPod, excludedByPod bool
	parsers                    map[string]*parser
}

func readKubernetes(o *options, parsers map[string]*parser) filter {
	k := &kubernetes{
		prefix: "kube.var.log.containers.", parsers: parsers, mergeKey: o.text("Merge_Log_Key"),
		merge: o.boolean("Merge_Log", false), trim: o.boolean("Merge_Log_Trim", true), keep: o.boolean("Keep_Log", true),
		labels: o.boolean("Labels", true), annotations: o.boolean("Annotations", true),
		parserByPod: o.boolean("K8S-Logging.Parser", false), excludedByPod: o.boolean("K8S-Logging.Exclude", false),
	}
	if e, ok := o.single("Kube_Tag_Prefix"); ok {
		k.prefix = e.value
	}
	o.owned("Kube_URL", "Kube_CA_File", "Kube_Token_Command", "Kube_Token_File")
	o.accept("Buffer_Size", "Kube_Meta_Cache_TTL")
	return k
}

func (k *kubernetes) apply(r *run, e Event) (Event, bool) {
	rest, ok := strings.CutPrefix(e.Tag, k.prefix)
	of := containerTag.FindStringSubmatch(rest)
	if !ok || of == nil {
		return e, true
	}
	name, namespace, container := of[1], of[2], of[3]
	pod, known := Pod{}, false
	if r.pods != nil {
		pod, known = r.pods(namespace, name)
	}
	if k.excludedByPod && known && annotation(pod, "exclude", e.Record, container) == "true" {
		return e, false
	}
	e.Record = k.merged(pod, container, e.Record)
	about := Map{{"pod_name", name}, {"namespace_name", namespace}}
	if known {
		about = append(about, Pair{"pod_id", pod.UID})
		if k.labels && len(pod.Labels) > 0 {
			about = append(about, Pair{"labels", sorted(pod.Labels)})
		}
		if k.annotations && len(pod.Annotations) > 0 {
			about = append(about, Pair{"annotations", sorted(pod.Annotations)})
		}
		about = append(about, Pair{"host", pod.Node})
	}
	about = append(about, Pair{"container_name", container}, Pair{"docker_id", of[4]})
	if image := pod.Images[container]; image != "" {
		about = append(about, Pair{"container_image", image})
	}
	e.Record = e.Record.with("kubernetes", about)
	return e, true
}

// annotation is what a pod suggests of the log of a container: fluentbit.io/WHAT, which may name a stream and a container.
func annotation(pod Pod, what string, record Map, container string) string {
	stream, _ := accessor{"stream"}.text(record)
	key := "fluentbit.io/" + what
	for _, name := range []string{key + "_" + stream + "-" + container, key + "-" + container, key + "_" + stream, key} {
		if value, ok := pod.Annotations[name]; ok {
			return value
		}
	}
	return ""
}

// merged is a record with the keys of its log, if that is an object.
func (k *kubernetes) merged(pod Pod, container string, record Map) Map {
	log, ok := record.Get("log")
	text, isText := log.(string)
	if !k.merge || !ok || !isText {
		return record
	}
	object, read := readObject(text)
	if suggested := k.parsers[annotation(pod, "parser", record, container)]; k.parserByPod && suggested != nil {
		object, _, read = suggested.parse(text, time.Time{})
	}
	if !read {
		return record
	}
	if !k.keep {
		record = record.without(func(p Pair) bool { return p.Key == "log" })
	}
	for i, p := range object {
		if text, ok := p.Value.(string); ok && k.trim {
			object[i].Value = strings.TrimRight(text, "\r\n")
		}
	}
	if k.mergeKey != "" {
		return record.with(k.mergeKey, object)
	}
	for _, p := range object {
		record = record.with(p.Key, p.Value)
	}
	return record
}
