"""The vocabulary from which organisations and their pages are made. All names are invented; the cities are real."""

from __future__ import annotations

FIRST = (
    "Alder", "Amber", "Anchor", "Birch", "Blue Heron", "Bramble", "Brightwater", "Cedar", "Clearfield", "Cobalt",
    "Copper", "Dawn", "Eastgate", "Elm", "Ember", "Fern", "Foxglove", "Granite", "Greenlane", "Harbour",
    "Hazel", "Heath", "Juniper", "Kestrel", "Lantern", "Larch", "Linden", "Meadow", "Millstone", "Northwind",
    "Oakhill", "Otter", "Pebble", "Quarry", "Riverbend", "Rowan", "Saltmarsh", "Silverbrook", "Tern", "Willow",
)  # fmt: skip

SECOND = (
    "Energy", "Water", "Textiles", "Foods", "Housing", "Mobility", "Forests", "Materials", "Fisheries", "Packaging",
    "Repair", "Lighting", "Furniture",
)  # fmt: skip

FORM = ("Cooperative", "Foundation", "Trust", "Works", "Institute", "Alliance", "Collective")

CITIES = (
    ("Bergen", "Norway", "+47 55 01"), ("Uppsala", "Sweden", "+46 18 30"), ("Aarhus", "Denmark", "+45 86 02"),
    ("Tampere", "Finland", "+358 3 219"), ("Tartu", "Estonia", "+372 7 30"), ("Ghent", "Belgium", "+32 9 220"),
    ("Utrecht", "Netherlands", "+31 30 211"), ("Bremen", "Germany", "+49 421 30"), ("Graz", "Austria", "+43 316 80"),
    ("Basel", "Switzerland", "+41 61 270"), ("Nantes", "France", "+33 2 40"), ("Porto", "Portugal", "+351 22 60"),
    ("Bilbao", "Spain", "+34 94 41"), ("Bologna", "Italy", "+39 051 21"), ("Ljubljana", "Slovenia", "+386 1 24"),
    ("Brno", "Czechia", "+420 542 12"), ("Cork", "Ireland", "+353 21 49"), ("Leeds", "United Kingdom", "+44 113 49"),
    ("Halifax", "Canada", "+1 902 555"), ("Nairobi", "Kenya", "+254 20 22"), ("Kochi", "India", "+91 484 22"),
    ("Valdivia", "Chile", "+56 63 22"), ("Hobart", "Australia", "+61 3 62"), ("Dunedin", "New Zealand", "+64 3 47"),
)  # fmt: skip

STREETS = ("Harbour Lane", "Mill Road", "Station Street", "Orchard Way", "Canal Quay", "Market Row", "Garden Terrace")

GIVEN = (
    "Ada", "Amara", "Bjorn", "Camille", "Dario", "Elif", "Farah", "Goran", "Hanna", "Ines", "Jonas", "Kavya", "Lukas",
    "Marta", "Noor", "Oskar", "Priya", "Rafael", "Sanna", "Tomas", "Ulrike", "Vera", "Wanjiru", "Yusuf", "Zofia",
)  # fmt: skip

FAMILY = (
    "Adeyemi", "Bakker", "Costa", "Dahl", "Eriksen", "Fischer", "Garcia", "Horvat", "Ivanova", "Jansen", "Kimani",
    "Lindqvist", "Moreau", "Novak", "Okafor", "Pereira", "Quispe", "Rossi", "Sato", "Tamm", "Virtanen", "Weber",
)  # fmt: skip

ROLES = (
    "Managing Director", "Head of Operations", "Head of Sustainability", "Finance Lead", "Community Coordinator",
    "Research Lead", "Head of Procurement", "Volunteer Coordinator",
)  # fmt: skip

MISSION_VERBS = ("make", "bring", "keep", "give")
MISSIONS = {
    "Energy": "clean electricity affordable for every household in our region",
    "Water": "drinking water safe and rivers alive for the people who live beside them",
    "Textiles": "clothes that last, mended and made close to where they are worn",
    "Foods": "good food from healthy soil within reach of every kitchen",
    "Housing": "warm homes that use a tenth of the energy they used to",
    "Mobility": "quiet, shared transport the easiest choice for every journey",
    "Forests": "mixed forests standing for the generations that follow us",
    "Materials": "building materials that can be taken apart and used again",
    "Fisheries": "coastal waters full of fish and coastal towns full of work",
    "Packaging": "packaging that returns to the soil or to the shelf",
    "Repair": "repair the first thought when something breaks",
    "Lighting": "good light with little power where the grid does not reach",
    "Furniture": "furniture from local timber that outlives its first owner",
}

PROJECTS = (
    "Roof to Grid", "Second Life", "Open Workshop", "Quiet Streets", "River Watch", "Seed Library", "Warm Rooms",
    "Common Ground", "Night Market", "Tool Bank", "School Orchard", "Slow Freight",
)  # fmt: skip

#: (text with {value} and {year}, unit, lowest, highest): sustainability claims
CLAIMS = (
    ("In {year} we cut our direct greenhouse gas emissions by {value} percent compared with 2015", "percent", 11, 64),
    ("Since {year}, {value} percent of our electricity has come from wind and sun", "percent", 40, 100),
    ("We planted {value} native trees in {year} together with local schools", "trees", 800, 48000),
    ("Our workshops saved {value} tonnes of material from landfill in {year}", "tonnes", 12, 900),
    ("In {year} we used {value} percent less water per unit than three years before", "percent", 8, 45),
    ("By the end of {year} {value} of our suppliers had signed our code of fair work", "suppliers", 14, 310),
    ("We offset nothing: in {year} we removed {value} tonnes of carbon from our own supply chain", "tonnes", 60, 5200),
    ("In {year} {value} percent of our packaging was made from recycled fibre", "percent", 52, 99),
)

#: Ordinary sentences that state no fact about the organization.
SENTENCES = (
    "Visitors are welcome on weekdays, and the kettle is usually on.",
    "The work is slow at first, and then one day it is simply how things are done.",
    "Much of what we know we learnt from people who had been doing it for decades.",
    "We publish what went wrong beside what went well, because both are useful.",
    "Every season begins with a walk along the site and a long list.",
    "Our neighbours were sceptical, and their questions made the plan better.",
    "A good tool, well kept, is worth more than a new one badly used.",
    "When the storm came the building stood, and the doors stayed open.",
    "The minutes of our meetings can be read by anyone who asks for them.",
    "It is easier to begin with one street than with a whole town.",
    "There is a shelf by the door for things that somebody else may need.",
    "Our apprentices stay for two summers and often for much longer.",
    "The old machines are noisy, but each of them can be taken apart and mended.",
    "We measure before we promise, and we measure again afterwards.",
    "Some of the best ideas were written on the back of a delivery note.",
    "The canteen cooks what the gardens give, and in autumn that is a great deal.",
    "Members meet on the first Tuesday of the month to decide what comes next.",
    "Nobody remembers who proposed it, which is how good proposals end.",
    "If a part cannot be bought any more, we draw it and have it made.",
    "The map on the wall has more pins every spring.",
    "We lend equipment to schools without charge, and most of it comes back.",
    "A quiet room is kept for those who need to think or to rest.",
    "The first version failed in the rain, so the second was tested in it.",
    "Our suppliers know us by name, and we know where their goods come from.",
)  # fmt: skip

#: Decoys: years, places and figures that belong to another organization.
DECOYS = (
    "Our neighbour, the Old Tannery Museum, opened its doors in {year} and moved to {city} later.",
    "The building was put up in {year} for a maker of sailcloth and has had many tenants since.",
    "A study from {city}, printed in {year}, had reached much the same conclusion.",
    "The Printers' Guild of {city}, established in {year}, lends us its hall twice a year.",
)
