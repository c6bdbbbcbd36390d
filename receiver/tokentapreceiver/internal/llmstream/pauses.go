// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// Pauses is what a request says about times in which its stream has no tokens though the service works, as far as its body
// passed.
type Pauses struct {
	// Reasoning is set if the request says how to reason: the answer may show it late, as a summary, or not at all.
	Reasoning bool
	// Long is set if the service may work for long without tokens: it runs tools itself, makes images or speech, or
	// selects among several answers.
	Long bool

	offersTools, forbidsCalls bool
}

// pauseMembers read the members of a body that Pauses knows.
var pauseMembers = map[string]func(*Pauses, value){
	"tools":       (*Pauses).tools,
	"functions":   (*Pauses).tools,
	"toolConfig":  (*Pauses).toolConfig,
	"tool_choice": (*Pauses).toolChoice,

	"agent_id":           (*Pauses).long, // an agent has tools of its own
	"connectors":         (*Pauses).long,
	"enable_search":      (*Pauses).long,
	"mcp_servers":        (*Pauses).long,
	"plugins":            (*Pauses).long,
	"search_parameters":  (*Pauses).long,
	"web_search_options": (*Pauses).long,

	"audio":            (*Pauses).long,
	"modalities":       (*Pauses).modalities,
	"generationConfig": func(p *Pauses, v value) { p.modalities(v.get("responseModalities")) },

	"best_of":         func(p *Pauses, v value) { p.Long = p.Long || string(v) != "1" },
	"use_beam_search": (*Pauses).long,

	"include_reasoning":  (*Pauses).reasoning,
	"reasoning":          (*Pauses).reasoning,
	"reasoning_effort":   (*Pauses).reasoning,
	"reasoning_format":   (*Pauses).reasoning,
	"separate_reasoning": (*Pauses).reasoning,
	"stream_reasoning":   (*Pauses).reasoning,
	"thinking":           (*Pauses).reasoning,
}

func (p *Pauses) tools(v value) {
	for tool := range v.elements {
		p.offersTools = true
		p.Long = p.Long || isServerTool(tool)
	}
}

// isServerTool reports whether the service may run a tool: it has a type of its own, or is no function.
func isServerTool(tool value) bool {
	own := true
	for name, m := range tool.members {
		switch string(name) {
		case "type":
			return !m.is("function") && !m.is("custom")
		case "name", "function", "functionDeclarations", "function_declarations", "toolSpec":
			own = false
		}
	}
	return own
}

func (p *Pauses) toolConfig(v value) { p.tools(v.get("tools")) } // of Bedrock; that of Gemini has none
func (p *Pauses) toolChoice(v value) { p.forbidsCalls = v.is("none") || v.get("type").is("none") }

func (p *Pauses) long(v value) { p.Long = p.Long || !v.isFalse() && !v.isNull() }

func (p *Pauses) modalities(v value) {
	p.Long = p.Long || v.any(func(m value) bool { return !bytes.EqualFold(m.raw(), []byte("text")) })
}

func (p *Pauses) reasoning(v value) {
	off := v.isNull() || v.is("none") || v.get("type").is("disabled")
	p.Reasoning = p.Reasoning || !off
}

// MayCall reports whether the model may call a tool: some services hold a call until it is whole.
func (p *Pauses) MayCall() bool { return p.offersTools && !p.forbidsCalls }
