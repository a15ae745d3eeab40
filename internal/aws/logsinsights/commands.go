// SPDX-License-Identifier: Apache-2.0

package logsinsights

import (
	"regexp"
	"strconv"
	"strings"

	"muster.dev/muster/internal/platform/regexpsize"
)

func (p *parser) command() Command {
	if p.tok.kind != nameToken || p.tok.quoted {
		p.unexpected()
		return nil
	}
	word := p.tok
	switch strings.ToLower(word.text) {
	case "fields":
		p.advance()
		return &Fields{Items: p.items()}
	case "display":
		p.advance()
		return &Fields{Items: p.items(), Display: true}
	case "filter", "where":
		p.advance()
		return &Filter{Condition: p.expression()}
	case "parse":
		p.advance()
		return p.parse()
	case "stats":
		p.advance()
		return p.stats()
	case "sort":
		p.advance()
		return p.sort()
	case "limit":
		p.advance()
		return p.limit()
	case "dedup":
		p.advance()
		return &Dedup{Fields: p.names()}
	case "pattern":
		p.advance()
		return &Pattern{Source: p.expression()}
	case "unnest":
		p.advance()
		return p.unnest()
	}
	if reason, found := refused[strings.ToLower(word.text)]; found {
		p.fail(word.Span, "command %s is not supported: %s", word.text, reason)
		return nil
	}
	p.unexpected()
	return nil
}

// items reads expressions with aliases.
func (p *parser) items() []Item {
	var items []Item
	for {
		items = append(items, p.item())
		if !p.takeSymbol(",") {
			return items
		}
	}
}

func (p *parser) item() Item {
	start := p.tok.Start
	value := p.expression()
	item := Item{Value: value, At: Span{start, max(start, p.last)}}
	if name, ok := value.(*Name); ok {
		item.Name = name.Flat
	} else {
		item.Name = p.query[item.At.Start:item.At.End]
	}
	if p.takeWord("as") {
		item.Name, item.Aliased = p.alias(), true
	}
	return item
}

func (p *parser) stats() *Stats {
	p.inStats = true
	s := &Stats{Items: p.items()}
	p.inStats = false
	if p.takeWord("by") {
		s.By = p.items()
	}
	return s
}

func (p *parser) sort() *Sort {
	s := &Sort{}
	for {
		key := SortKey{Value: p.expression()}
		if p.takeWord("desc") {
			key.Descending = true
		} else {
			p.takeWord("asc")
		}
		s.Keys = append(s.Keys, key)
		if !p.takeSymbol(",") {
			return s
		}
	}
}

// limit reads `limit 20`. `limit any 20` asks for any 20 rows, which the first 20 are.
func (p *parser) limit() *Limit {
	p.takeWord("any")
	if p.tok.kind != numberToken {
		p.unexpected()
		return nil
	}
	count, err := strconv.Atoi(p.tok.text)
	if err != nil || count < 1 || count > MaxRows {
		p.fail(p.tok.Span, "limit %s: it must be a number from 1 to %d", p.tok.text, MaxRows)
		return nil
	}
	p.advance()
	return &Limit{Count: count}
}

func (p *parser) names() []Expression {
	var names []Expression
	for {
		if p.tok.kind != nameToken || p.isWord(reserved...) {
			p.unexpected()
			return nil
		}
		names = append(names, p.name())
		if !p.takeSymbol(",") {
			return names
		}
	}
}

func (p *parser) unnest() *Unnest {
	source := p.expression()
	if !p.takeWord("into") {
		p.unexpected()
		return nil
	}
	return &Unnest{Source: source, As: p.alias()}
}

// parse reads a glob with its aliases, or a regular expression with named groups. Without a field, @message is parsed.
func (p *parser) parse() *Extract {
	var source Expression = &Name{Flat: "@message", Segments: []string{"@message"}, Span: p.tok.Span}
	if p.tok.kind == nameToken {
		source = p.name()
	}
	switch {
	case p.tok.kind == textToken:
		return p.glob(source)
	case p.isSymbol("/"):
		return p.groups(source)
	case p.isWord("logfmt", "csv", "xml", "multi"):
		p.fail(p.tok.Span, "parse %s is not supported: parse by a glob or a regular expression", p.tok.text)
	default:
		p.unexpected()
	}
	return nil
}

func (p *parser) glob(source Expression) *Extract {
	glob := p.tok
	p.advance()
	if !p.takeWord("as") {
		p.unexpected()
		return nil
	}
	names := p.aliases()
	if wildcards := strings.Count(glob.text, "*"); p.err == nil && wildcards != len(names) {
		p.fail(glob.Span, "the glob has %d wildcards and %d names after as: it must have as many", wildcards, len(names))
		return nil
	}
	return &Extract{Source: source, Pattern: globPattern(glob.text), Names: names}
}

// globPattern returns the regular expression that a glob means: it may begin anywhere in the text, each * is as short as it can
// be, and a * at the end goes on to the end of the text.
func globPattern(glob string) *regexp.Regexp {
	parts := strings.Split(glob, "*")
	var pattern strings.Builder
	pattern.WriteString("(?s)")
	for i, part := range parts {
		pattern.WriteString(regexp.QuoteMeta(part))
		switch {
		case i == len(parts)-1:
		case i == len(parts)-2 && parts[i+1] == "":
			pattern.WriteString("(.*)")
		default:
			pattern.WriteString("(.*?)")
		}
	}
	return regexp.MustCompile(pattern.String())
}

func (p *parser) groups(source Expression) *Extract {
	at := p.tok.Span
	pattern := p.regex()
	if pattern == nil {
		return nil
	}
	names := pattern.SubexpNames()[1:]
	unnamed := 0
	for _, name := range names {
		if name == "" {
			unnamed++
		}
	}
	if p.takeWord("as") {
		aliases := p.aliases()
		if p.err == nil && len(aliases) != unnamed {
			p.fail(at, "the regular expression has %d groups without a name and %d names after as: it must have as many", unnamed, len(aliases))
			return nil
		}
		for i := range names {
			if names[i] == "" && len(aliases) > 0 {
				names[i], aliases = aliases[0], aliases[1:]
			}
		}
	} else if unnamed == len(names) {
		p.fail(at, "the regular expression has no named group: write (?<name>...) around what is wanted")
		return nil
	}
	return &Extract{Source: source, Pattern: pattern, Names: names}
}

// regex reads a regular expression. The current token is its first slash.
func (p *parser) regex() *regexp.Regexp {
	text, at, err := p.lexer.regex(p.tok)
	if err != nil {
		p.stop(err)
		return nil
	}
	size, sizeError := regexpsize.Of(text)
	if p.steps += size; sizeError == nil && p.steps > MaxSteps {
		p.fail(at, "the regular expression is too large: with their repetitions those of a query may have %d steps", MaxSteps)
		return nil
	}
	pattern, compileError := regexp.Compile(text)
	if compileError != nil {
		p.fail(at, "the regular expression cannot be read: %s", strings.TrimPrefix(compileError.Error(), "error parsing regexp: "))
		return nil
	}
	p.tok.End = at.End
	p.advance()
	return pattern
}
