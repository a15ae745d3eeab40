// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/cmd/muster/terminal"
	columns "muster.dev/muster/internal/platform/table"
)

// Printer prints objects of one kind in one format, now and as they change.
type Printer struct {
	Out       io.Writer
	Scheme    *runtime.Scheme
	Kind      Kind
	Format    string
	NoHeaders bool
	Follows   bool // objects keep coming, so it is not known yet which columns have something in them
	Now       func() time.Time

	table   *columns.Table
	printed bool
}

// Objects prints several as a list, or as rows.
func (p *Printer) Objects(objects []client.Object) error {
	switch p.Format {
	case terminal.FormatJSON, terminal.FormatYAML:
		items := make([]any, 0, len(objects))
		for _, object := range objects {
			content, err := ToMap(object, p.Scheme)
			if err != nil {
				return err
			}
			items = append(items, content)
		}
		return p.document(map[string]any{ // as kubectl prints it
			"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items,
		})
	}
	if p.Format == terminal.FormatName {
		for _, object := range objects {
			if _, err := fmt.Fprintln(p.Out, p.Kind.Qualified(object.GetName())); err != nil {
				return err
			}
		}
		return nil
	}
	return p.rows(objects)
}

// Object prints one.
func (p *Printer) Object(object client.Object) error {
	if p.Format != terminal.FormatJSON && p.Format != terminal.FormatYAML {
		return p.Objects([]client.Object{object})
	}
	content, err := ToMap(object, p.Scheme)
	if err != nil {
		return err
	}
	return p.document(content)
}

// rows prints an object in a line each, under headings before the first.
func (p *Printer) rows(objects []client.Object) error {
	rows := make([][]string, len(objects))
	var headings []string
	for _, c := range p.Kind.columns {
		if c.wide && p.Format != terminal.FormatWide {
			continue
		}
		cells := make([]string, len(objects))
		for i, object := range objects {
			cells[i] = c.cell(object, p.Now())
		}
		if c.ifAny && !p.Follows && !slices.ContainsFunc(cells, func(cell string) bool { return cell != "" }) {
			continue
		}
		headings = append(headings, c.heading)
		for i, cell := range cells {
			rows[i] = append(rows[i], cell)
		}
	}
	if p.table == nil {
		if p.NoHeaders {
			headings = nil
		}
		p.table = columns.New(p.Out, headings...)
	}
	for _, row := range rows {
		p.table.Row(row...)
	}
	return p.table.Flush()
}

func (p *Printer) document(content map[string]any) error {
	var out bytes.Buffer
	if p.Format == terminal.FormatJSON {
		encoder := json.NewEncoder(&out)
		encoder.SetIndent("", "    ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(content); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	} else {
		if p.printed {
			out.WriteString("---\n")
		}
		text, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		out.Write(text)
	}
	p.printed = true
	_, err := p.Out.Write(out.Bytes())
	return err
}

// ToMap is an object with its kind and without what only servers need.
func ToMap(object client.Object, scheme *runtime.Scheme) (map[string]any, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, fmt.Errorf("printing: %w", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("printing: %w", err)
	}
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	if created := object.GetCreationTimestamp(); created.IsZero() { // it exists nowhere yet, so nothing has been observed of it
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		delete(content, "status")
	}
	return content, nil
}
