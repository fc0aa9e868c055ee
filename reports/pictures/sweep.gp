# Peak and step time against an axis, one above the other.
zp_line = zp_capacity <= zp_top ? zp_capacity : NaN
zp_long = zp_n_values > 12
set xrange [0.6:zp_n_values + 0.4]
set grid xtics ytics
set xtics scale 0.4
zp_every = zp_n_values > 40 ? ceil(zp_n_values / 40) : 1
set multiplot
set lmargin at screen 0.075
zp_right = 0.94 - 0.0064 * (zp_longest > 20 ? zp_longest : 20)
zp_right = zp_right < 0.4 ? 0.4 : zp_right
set rmargin at screen zp_right
set key at screen zp_right + 0.01, screen 0.92 left top
set tmargin at screen 0.92
set bmargin at screen 0.53
set xtics ()
do for [i = 1:int(zp_n_values):int(zp_every)] { set xtics add ('' i) }
set ylabel 'peak of a rank (GiB)'
set yrange [0:zp_top]
plot for [i = 1:int(zp_n)] $series index i - 1 using 1:2 with linespoints lw 2 pt 7 ps 1.2 \
         lc rgb zp_series[1 + (i - 1) % 8] dt 1 + (i - 1) / 8 \
         title (zp_n > 1 ? zp_name[i] : ''), \
     for [i = 1:int(zp_n)] $series index i - 1 using 1:($4 == 0 ? $2 : NaN) with points pt 7 ps 0.6 \
         lc rgb 'white' notitle, \
     zp_capacity > 0 ? zp_line : NaN with lines lc rgb '#c00000' lw 2 dt 2 \
         title (zp_capacity > 0 ? zp_capacity_text : ''), \
     (zp_all_fit > 0 ? NaN : -1) with points pt 6 ps 1.2 lc rgb '#606060' \
         title (zp_all_fit > 0 ? '' : 'does not fit')
unset title
set tmargin at screen 0.49
set bmargin at screen (zp_long ? 0.16 : 0.11)
do for [i = 1:int(zp_n_values):int(zp_every)] { set xtics add (zp_value[i] i) }
if (zp_long) { set xtics rotate by -45 }
set xlabel zp_axis
set ylabel 'step time (ms)'
set yrange [0:zp_slowest * 1.12]
plot for [i = 1:int(zp_n)] $series index i - 1 using 1:3 with linespoints lw 2 pt 7 ps 1.2 \
         lc rgb zp_series[1 + (i - 1) % 8] dt 1 + (i - 1) / 8 \
         notitle, \
     for [i = 1:int(zp_n)] $series index i - 1 using 1:($4 == 0 ? $3 : NaN) with points pt 7 ps 0.6 \
         lc rgb 'white' notitle
unset multiplot
