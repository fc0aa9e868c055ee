$series << EOD
1 0.279396772 90 1
2 0.37252903 60 1
3 NaN NaN 1
4 0.74505806 50 0


1 0.186264515 120 1
4 0.698491931 70 0


EOD
zp_title = 'wrapping: peak and step time against zero.wrap_blocks'
zp_axis = 'zero.wrap_blocks'
zp_capacity = 0.651925802
zp_capacity_text = 'capacity 0.65 GiB'
zp_top = 0.834465027
zp_slowest = 120.0
zp_longest = 8.0
zp_all_fit = 0.0
zp_n_values = 4.0
array zp_value[4] = ['1', '2', '4', '8']
zp_n = 2.0
array zp_name[2] = ['ranks=8', 'ranks=16']
array zp_series[8] = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#4d4d4d', '#a89b00']
# Shared by all plots.
set border 3 lc rgb '#404040'
set tics nomirror out tc rgb '#404040'
set grid ytics lc rgb '#e4e4e4' lw 1
set key outside right top reverse Left samplen 2.6 spacing 1.15 tc rgb '#202020'
set title zp_title font ',20' tc rgb '#101010'
set lmargin 11
set bmargin 4.5
set style fill solid 1.0 noborder
set style textbox opaque noborder margins 0.6, 0.4
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
