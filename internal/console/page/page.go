// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/platform/shellquote"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// The names of pages, which are those of their templates.
const (
	Overview     = "overview"
	Machine      = "machine"
	Certificates = "certificates"
	Access       = "access"
	Changes      = "changes"
	Logs         = "logs"
	NewCluster   = "new"
	plainPage    = "plain"
)

// Frame is what pages have in common.
type Frame struct {
	// Name of the page, such as Overview.
	Name string
	// Title of the document, without the program's name.
	Title string
	// Address of the page with its query, from the root. It is empty for a page that nothing keeps current.
	Address string
	// Token goes with each form that changes something.
	Token string
	// At is the moment that the page is about.
	At time.Time
	// Flags are those that commands need to be about the same installation, such as --state-dir=/srv/muster.
	Flags []string
	// ReadOnly reports whether the console makes nothing, and Viewer names whose rights it has.
	ReadOnly bool
	Viewer   string
}

// Plain is a page of a few words, without the parts that need a session.
type Plain struct {
	Heading string
	Lines   []string
	// Command that helps; empty for none.
	Command string
	// Onward is an address of this server where a browser goes on at once; empty for none.
	Onward string
	// SignIn has the page have the form in which a token of an IAM identity is pasted, and Why is why one was not taken.
	SignIn bool
	Why    string
}

// Pages makes pages.
type Pages struct {
	templates map[string]*template.Template
	assets    map[string]Asset // by the path under which they are served
	paths     map[string]string
}

// Asset is a file that pages load.
type Asset struct {
	Type string // media type
	Data []byte
}

// document is what templates are filled in with.
type document struct {
	Frame
	View  any
	Shown string // the hash of the part of the page that changes

	paths map[string]string
}

// link is one entry of the navigation.
type link struct {
	Name, Address string
	Here          bool
}

// New reads the templates and files.
func New() (*Pages, error) {
	p := &Pages{templates: map[string]*template.Template{}, assets: map[string]Asset{}, paths: map[string]string{}}
	for _, name := range []string{Overview, Machine, Certificates, Access, Changes, Logs, NewCluster, plainPage} {
		t, err := template.New(name).Funcs(functions()).ParseFS(templateFiles, "templates/document.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the template of the page %s: %w", name, err)
		}
		p.templates[name] = t
	}
	for file, kind := range map[string]string{"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		data, err := assetFiles.ReadFile("assets/" + file)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		p.paths[file] = path.Join("/assets", hex.EncodeToString(sum[:6]), file)
		p.assets[p.paths[file]] = Asset{kind, data}
	}
	return p, nil
}

// Asset returns the file that is served under a path.
func (p *Pages) Asset(path string) (Asset, bool) {
	a, ok := p.assets[path]
	return a, ok
}

// Part makes the part of a page that changes: what is in its main element. The second value is its hash.
func (p *Pages) Part(f Frame, view any) (html, shown string, err error) {
	t, ok := p.templates[f.Name]
	if !ok {
		return "", "", fmt.Errorf("there is no page %q", f.Name)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, "main", document{Frame: f, View: view, paths: p.paths}); err != nil {
		return "", "", fmt.Errorf("making the page %s: %w", f.Name, err)
	}
	html = visible(out.String())
	sum := sha256.Sum256([]byte(html))
	return html, hex.EncodeToString(sum[:8]), nil
}

// thinBlank stands between the thousands of numbers.
const thinBlank = '\u202f'

// visible is HTML in which each character that cannot be seen is written as in a Go string, wherever it stands: characters
// of strangers that turn the direction of writing, for instance. The escapes have no meaning in HTML.
func visible(html string) string {
	var b strings.Builder
	b.Grow(len(html))
	for _, r := range html {
		if strconv.IsPrint(r) || r == '\n' || r == '\t' || r == thinBlank {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Whole makes a whole page.
func (p *Pages) Whole(f Frame, view any) ([]byte, error) {
	_, shown, err := p.Part(f, view)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := p.templates[f.Name].ExecuteTemplate(&out, "document", document{Frame: f, View: view, Shown: shown, paths: p.paths}); err != nil {
		return nil, fmt.Errorf("making the page %s: %w", f.Name, err)
	}
	return []byte(visible(out.String())), nil
}

// Plain makes a page of a few words.
func (p *Pages) Plain(words Plain) ([]byte, error) {
	var out bytes.Buffer
	err := p.templates[plainPage].ExecuteTemplate(&out, plainPage, document{View: words, paths: p.paths})
	return []byte(visible(out.String())), err
}

// Asset is the path of a file that the page loads.
func (d document) Asset(file string) string { return d.paths[file] }

// Pages are the entries of the navigation.
func (d document) Pages() []link {
	all := []link{
		{"Overview", "/", d.Name == Overview},
		{"Certificates", "/certificates", d.Name == Certificates},
		{"Access", "/access", d.Name == Access},
		{"Changes", "/changes", d.Name == Changes},
		{"Logs", "/logs", d.Name == Logs},
	}
	if !d.ReadOnly {
		all = append(all, link{"New", "/new", d.Name == NewCluster})
	}
	return all
}

// ClusterCommand is a command line about one cluster; about that of the flags, if the name is empty.
func (f Frame) ClusterCommand(cluster string, words ...string) string {
	if cluster == "" {
		return f.Command(words...)
	}
	flags := slices.DeleteFunc(slices.Clone(f.Flags), func(flag string) bool { return strings.HasPrefix(flag, "--cluster=") })
	return Frame{Flags: append([]string{"--cluster=" + cluster}, flags...)}.Command(words...)
}

// Command is a command line of muster's with the flags of this installation.
func (f Frame) Command(words ...string) string {
	line := []string{"muster"}
	for _, word := range append(append([]string{}, words...), f.Flags...) {
		line = append(line, shellquote.Quote(word))
	}
	return strings.Join(line, " ")
}
